import { posix } from "node:path";
import type { Node } from "typescript/unstable/ast";
import { isCallExpression, isFunctionDeclaration, isIdentifier } from "typescript/unstable/ast/is";
import { importsOf } from "./layers.ts";
import { type CodeFile, type Finding, isExported, isTest, type Tree } from "./tree.ts";

const SOURCE_FILES_MAX = 25;

/** Folders that may have any number of files, because each is a plain list: one file per command. */
const LISTS = new Set(["src/cli/commands"]);

/** Checks that a folder is small enough to read, and that code only for tests is in `testing/`. */
export function checkFolders(tree: Tree): Finding[] {
  const users = usersOf(tree.code);
  return [
    ...tooManyFiles(tree),
    ...tree.files.flatMap(({ path }) => checkFixture(path)),
    ...tree.code.flatMap((file) => [...checkSpec(file, users), ...checkTestOnly(tree, file, users)]),
  ];
}

function tooManyFiles({ code }: Tree): Finding[] {
  const folders = Map.groupBy(
    code.filter(({ path }) => !isTest(path)),
    ({ path }) => posix.dirname(path),
  );
  return [...folders].flatMap(([folder, { length }]) =>
    length > SOURCE_FILES_MAX && !LISTS.has(folder)
      ? [{ path: folder, line: 1, text: `${length} source files in one folder; at most ${SOURCE_FILES_MAX}` }]
      : [],
  );
}

/** Recordings and samples belong in `testing/`, where nobody mistakes them for part of the product. */
function checkFixture(path: string): Finding[] {
  const parts = path.split("/");
  const at = parts.findIndex((part) => part === "fixtures" || part === "fixture");
  if (at < 0 || parts.slice(0, at).includes("testing") || parts[0] === "docs") return [];
  return [{ path, line: 1, text: "fixtures belong in a testing/ folder" }];
}

function checkSpec({ path, source, nodes }: CodeFile, users: Users): Finding[] {
  if (!/\.spec\.[cm]?tsx?$/.test(path)) return [];
  const isCallable = source.statements.some((node) => isFunctionDeclaration(node) && isExported(node));
  const isSuite = isCallable && nodes.some(callsTest);
  if (!isSuite)
    return [
      {
        path,
        line: 1,
        text: "a .spec.ts must export a conformance suite; other test support belongs in testing/",
      },
    ];
  return users.has(path) ? [] : [{ path, line: 1, text: "no test runs this conformance suite" }];
}

const TESTS = new Set(["describe", "it", "suite", "test"]);

function callsTest(node: Node): boolean {
  return isCallExpression(node) && isIdentifier(node.expression) && TESTS.has(node.expression.text);
}

/**
 * Refuses a source file that only tests import. Allows it if other code contains the file's path, because
 * that code starts the file as a program.
 */
function checkTestOnly({ code }: Tree, { path }: CodeFile, users: Users): Finding[] {
  const by = users.get(path) ?? [];
  if (!path.startsWith("src/") || isTest(path) || by.length === 0 || !by.every(isTest)) return [];
  const name = posix.join(posix.basename(posix.dirname(path)), posix.basename(path, ".ts"));
  if (code.some((file) => !isTest(file.path) && file.text.includes(`/${name}`))) return [];
  return [{ path, line: 1, text: "only tests import this; move it to a testing/ folder" }];
}

/** For each file, the files that import it. */
type Users = ReadonlyMap<string, readonly string[]>;

function usersOf(code: readonly CodeFile[]): Users {
  const uses = code.flatMap((file) =>
    importsOf(file)
      .filter(({ specifier }) => specifier.startsWith("."))
      .map(({ specifier }) => ({ by: file.path, path: posix.join(posix.dirname(file.path), specifier) })),
  );
  const grouped = Map.groupBy(uses, ({ path }) => path);
  return new Map([...grouped].map(([path, list]) => [path, list.map(({ by }) => by)]));
}
