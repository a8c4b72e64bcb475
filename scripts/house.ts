import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isAsExpression, isTypeReferenceNode } from "typescript/unstable/ast/is";
import { countCycleGroups } from "./tidy/cycles.ts";
import type { LAYERS } from "./tidy/layers.ts";
import { type CodeFile, isTest, readTree } from "./tidy/tree.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Returns the figures by which we judge the structure of the code at one commit. */
async function measure(commit: string): Promise<Record<string, number>> {
  const folder = mkdtempSync(join(tmpdir(), "kinfold-house-"));
  try {
    const files = execFileSync("git", ["archive", commit], { cwd: ROOT, maxBuffer: 512 * 1024 * 1024 });
    execFileSync("tar", ["-x", "-C", folder], { input: files });
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    return await numbersOf(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function numbersOf(folder: string): Promise<Record<string, number>> {
  const tree = readTree(folder);
  const code = tree.code.filter(({ path }) => path.startsWith("src/"));
  const source = code.filter(({ path }) => !isTest(path));
  // `commands` has one file per command, so its number of files is not judged.
  const folders = Map.groupBy(source, ({ path }) => posix.dirname(path));
  folders.delete("src/cli/commands");
  const store = source.filter(({ path }) => path.startsWith("src/store/"));
  const casts = store.reduce((sum, { nodes }) => sum + nodes.filter(isCast).length, 0);
  return {
    "source files": source.length,
    "source lines": linesOf(source),
    "source and test lines": linesOf(code),
    "folders over 15 source files": [...folders.values()].filter(({ length }) => length > 15).length,
    "one-file permissions": await permissions(folder),
    "value cycles": countCycleGroups(source),
    "casts per 1,000 lines in store": Math.round((casts / linesOf(store)) * 10_000) / 10,
  };
}

function linesOf(files: readonly CodeFile[]): number {
  return files.reduce((sum, { text }) => sum + text.split("\n").length - 1, 0);
}

/** `as const` does not count: it narrows the type and hides nothing. */
function isCast(node: CodeFile["nodes"][number]): boolean {
  return isAsExpression(node) && !(isTypeReferenceNode(node.type) && node.type.getText() === "const");
}

/**
 * Counts the additional modules that the import table allows to single files. `log.ts` is not counted,
 * because almost every file may import it.
 */
async function permissions(folder: string): Promise<number> {
  const url = pathToFileURL(join(folder, "scripts/tidy/layers.ts")).href;
  const module: { LAYERS: typeof LAYERS } = await import(url);
  const doors = Object.values(module.LAYERS).flatMap(({ only = {} }) => Object.values(only).flat());
  return doors.filter((door) => door.endsWith(".ts") && door !== "log.ts").length;
}

if (import.meta.main) {
  const commits = process.argv.length > 2 ? process.argv.slice(2) : ["0533936", "HEAD"];
  const columns = [];
  for (const commit of commits) columns.push(await measure(commit));
  console.log(`| | ${commits.join(" | ")} |\n|---|${"---:|".repeat(commits.length)}`);
  for (const name of Object.keys(columns[0] ?? {}))
    console.log(`| ${name} | ${columns.map((column) => column[name]?.toLocaleString("en")).join(" | ")} |`);
}
