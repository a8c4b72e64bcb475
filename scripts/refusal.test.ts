import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { isIdentifier, isNewExpression, isStringLiteral } from "typescript/unstable/ast/is";
import { OPERATIONS, REFUSALS } from "../src/contract/index.ts";
import { ROOT } from "./reference.ts";
import { isTest, readTree } from "./tidy/tree.ts";

describe("the table of refusals, the code and the docs are one", () => {
  const known = new Set<string>(Object.keys(REFUSALS));
  const nodes = readTree(ROOT)
    .code.filter(
      ({ path }) => path.startsWith("src/") && !/^src\/(?:contract|cli|client)\//.test(path) && !isTest(path),
    )
    .flatMap(({ path, nodes }) => nodes.map((node) => ({ path, node })));

  it("every code in the table is used by the code", () => {
    const words = new Set(nodes.flatMap(({ node }) => (isStringLiteral(node) ? [node.text] : [])));
    assert.deepEqual([...known.difference(words)], [], "codes nobody answers with");
  });

  it("every code that is thrown is in the table", () => {
    const unknown = nodes.flatMap(({ path, node }) => {
      if (!isNewExpression(node) || !isIdentifier(node.expression) || node.expression.text !== "Refusal")
        return [];
      const code = node.arguments?.[0];
      return code !== undefined && isStringLiteral(code) && !known.has(code.text)
        ? [`${path}: ${code.text}`]
        : [];
    });
    assert.deepEqual(unknown, []);
  });

  it("every code is documented, and nothing else is", () => {
    const page = readFileSync(join(ROOT, "docs/reference/refusals.md"), "utf8");
    const documented = [...page.matchAll(/<a id="(\w+)">/g)].map((match) => match[1]);
    assert.deepEqual(documented, [...known]);
  });

  it("every code an operation names is in the table", () => {
    const named = Object.values(OPERATIONS).flatMap(({ refusals }): readonly string[] => refusals);
    assert.deepEqual([...new Set(named).difference(known)], []);
  });
});
