import { fileURLToPath } from "node:url";
import { checkCycles } from "./tidy/cycles.ts";
import { checkFolders } from "./tidy/folders.ts";
import { checkImports, layerTable } from "./tidy/layers.ts";
import { checkNames } from "./tidy/names.ts";
import { checkSizes } from "./tidy/sizes.ts";
import { checkSyntax } from "./tidy/syntax.ts";
import { checkTestBodies } from "./tidy/test-body.ts";
import { checkText } from "./tidy/text.ts";
import { type Finding, readTree, type Tree } from "./tidy/tree.ts";

/** Returns everything in a tree that violates the machine-checkable rules of CONTRIBUTING.md. */
export function tidy(root: string): Finding[] {
  const tree = readTree(root);
  return [
    ...tree.code.flatMap((file) => [...checkImports(file), ...checkSizes(file), ...checkSyntax(file)]),
    ...tree.files.flatMap(checkText),
    ...checkCycles(tree),
    ...checkTestBodies(tree),
    ...checkFolders(tree),
    ...checkNames(tree),
    ...checkPrintedTable(tree),
  ].toSorted((a, b) => (a.path === b.path ? a.line - b.line : a.path < b.path ? -1 : 1));
}

export const TABLE_START = "<!-- import table: npm run docs -->";
export const TABLE_END = "<!-- end of import table -->";

/** Returns the text with the import table between its markers updated. */
export function withTable(text: string): string {
  const [start, end] = [text.indexOf(TABLE_START), text.indexOf(TABLE_END)];
  if (start < 0 || end < start) return text;
  return `${text.slice(0, start)}${TABLE_START}\n\n${layerTable()}\n\n${text.slice(end)}`;
}

/** Checks that the printed import table matches the enforced one. */
function checkPrintedTable(tree: Tree): Finding[] {
  const page = tree.files.find(({ path }) => path === "ARCHITECTURE.md");
  if (page === undefined) return [];
  const printed = page.text.includes(TABLE_START) && withTable(page.text) === page.text;
  const text = "its import table is not the one in scripts/tidy/layers.ts; run `npm run docs`";
  return printed ? [] : [{ path: page.path, line: 1, text }];
}

if (import.meta.main) {
  const findings = tidy(fileURLToPath(new URL("..", import.meta.url)));
  for (const { path, line, text } of findings) console.log(`${path}:${line}: ${text}`);
  if (findings.length > 0) console.error(`${findings.length} problems found.`);
  process.exitCode = findings.length === 0 ? 0 : 1;
}
