import { readdirSync, readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Node, SyntaxKind } from "typescript/unstable/ast";
import { type CodeFile, isTest, nodesOf, parsed } from "../tidy/tree.ts";

const FUNCTIONS: ReadonlySet<SyntaxKind> = new Set([
  SyntaxKind.FunctionDeclaration,
  SyntaxKind.FunctionExpression,
  SyntaxKind.ArrowFunction,
  SyntaxKind.MethodDeclaration,
  SyntaxKind.Constructor,
  SyntaxKind.GetAccessor,
  SyntaxKind.SetAccessor,
]);

/**
 * Makes every function of `src` report its file when it is called. Call it before importing anything of
 * `src`. Threads and other processes are not instrumented.
 */
export function reportCalls(root: string, entered: (file: string) => void): void {
  const paths = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .map((path) => `src/${path.replaceAll("\\", "/")}`)
    .filter((path) => path.endsWith(".ts") && !isTest(path));
  const files = parsed(paths.map((path) => ({ path, text: readFileSync(join(root, path), "utf8") })));
  const sources = new Map(
    files.map((file, index) => [pathToFileURL(join(root, file.path)).href, instrumented(file, index)]),
  );
  (globalThis as { entered?: (index: number) => void }).entered = (index) => entered(files[index]!.path);
  registerHooks({
    load(url, context, next) {
      const source = sources.get(url);
      if (source === undefined) return next(url, context);
      return { format: "module-typescript", source, shortCircuit: true };
    },
  });
}

/** Returns the source with a call of `entered` at the start of each function. Line numbers do not change. */
function instrumented({ source, text }: CodeFile, index: number): string {
  const report = `globalThis.entered(${index})`;
  const inserts: { at: number; text: string }[] = [];
  for (const node of nodesOf(source)) {
    const { body } = node as { body?: Node };
    if (!FUNCTIONS.has(node.kind) || body === undefined) continue;
    const start = body.getStart(source);
    if (body.kind === SyntaxKind.Block) inserts.push({ at: start + 1, text: `${report};` });
    else inserts.push({ at: start, text: `(${report},` }, { at: body.end, text: ")" });
  }
  let at = 0;
  let result = "";
  // The sort is stable: at the same position, text for an outer function stays before that for an inner one.
  for (const insert of inserts.toSorted((a, b) => a.at - b.at)) {
    result += text.slice(at, insert.at) + insert.text;
    at = insert.at;
  }
  return result + text.slice(at);
}
