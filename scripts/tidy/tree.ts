import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { API } from "typescript/unstable/sync";
import { type Node, type SourceFile, SyntaxKind } from "typescript/unstable/ast";

/** One file as the rules see it: its path from the root, with forward slashes, and its text. */
export interface TreeFile {
  readonly path: string;
  readonly text: string;
}

export interface CodeFile extends TreeFile {
  readonly source: SourceFile;
  /** All nodes, parents before children; collected once, because every rule visits all of them. */
  readonly nodes: readonly Node[];
}

export interface Tree {
  readonly root: string;
  readonly files: readonly TreeFile[];
  readonly code: readonly CodeFile[];
}

export interface Finding {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/**
 * Reads every file that git tracks or does not ignore; in a folder without git, everything except installed
 * packages.
 */
export function readTree(root: string): Tree {
  const files = listed(root)
    .filter((path) => statSync(join(root, path), { throwIfNoEntry: false })?.isFile())
    .map((path) => ({ path, bytes: readFileSync(join(root, path)) }))
    .filter(({ bytes }) => !bytes.subarray(0, 8000).includes(0))
    .map(({ path, bytes }) => ({ path, text: bytes.toString("utf8") }));
  return { root, files, code: parsed(files.filter(({ path }) => isCode(path))) };
}

export function isCode(path: string): boolean {
  return /\.(?:[cm]?[jt]s|tsx)$/.test(path);
}

export function isTest(path: string): boolean {
  return /\.(?:test|spec|long)\.[cm]?tsx?$|\/testing\//.test(path) || path.startsWith("test/");
}

export function finding(file: CodeFile, node: Node, text: string): Finding {
  return { path: file.path, line: lineOf(file, node.getStart(file.source)), text };
}

export function lineOf(file: CodeFile, position: number): number {
  return file.source.getLineAndCharacterOfPosition(position).line + 1;
}

/** Returns a node and every node below it, parents before children. */
export function nodesOf(node: Node): Node[] {
  const found: Node[] = [];
  const visit = (at: Node): void => {
    found.push(at);
    at.forEachChild((child) => void visit(child));
  };
  visit(node);
  return found;
}

export function isExported(node: Node): boolean {
  const { modifiers } = node as { modifiers?: readonly Node[] };
  return modifiers?.some((modifier) => modifier.kind === SyntaxKind.ExportKeyword) ?? false;
}

function listed(root: string): string[] {
  const inGit = existsSync(join(root, ".git"));
  if (inGit) {
    const args = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
    const git = spawnSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
    if (git.status === 0) return [...new Set(git.stdout.split("\0").filter(Boolean))].toSorted();
  }
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => !/(?:^|\/)(?:node_modules|\.git)(?:\/|$)/.test(path))
    .toSorted();
}

const texts = new Map<string, string>();
let compiler: API | undefined;
let projects = 0;

/** Returns the compiler that the whole process shares. Starting one takes longer than all its work. */
function theCompiler(): API {
  compiler ??= new API({
    cwd: "/",
    fs: {
      readFile: (path) => texts.get(path) ?? null,
      fileExists: (path) => texts.has(path),
      directoryExists: () => true,
      getAccessibleEntries: () => ({ files: [], directories: [] }),
      realpath: (path) => path,
    },
  });
  return compiler;
}

/**
 * Parses the syntax only: the compiler sees a project without libraries and resolves no imports. This takes
 * milliseconds and works even on an incomplete tree.
 */
export function parsed(files: readonly TreeFile[]): CodeFile[] {
  const place = `/tidy-${projects++}/`;
  const config = `${place}tsconfig.json`;
  const compilerOptions = {
    noLib: true,
    noResolve: true,
    types: [],
    allowJs: true,
    noEmit: true,
    jsx: "preserve",
  };
  for (const { path, text } of files) texts.set(place + path, text);
  texts.set(config, JSON.stringify({ compilerOptions, files: files.map(({ path }) => place + path) }));
  const project = theCompiler()
    .updateSnapshot({ openProjects: [config] })
    .getProject(config);
  return files.map((file) => {
    const source = project?.program.getSourceFile(place + file.path);
    if (source === undefined) throw new Error(`The compiler did not read ${file.path}.`);
    return { ...file, source, nodes: nodesOf(source) };
  });
}
