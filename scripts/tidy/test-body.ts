import { posix } from "node:path";
import { type CallExpression, type ImportDeclaration, type Node, SyntaxKind } from "typescript/unstable/ast";
import {
  isArrowFunction,
  isBinaryExpression,
  isBlock,
  isCallExpression,
  isFunctionDeclaration,
  isFunctionExpression,
  isIdentifier,
  isIfStatement,
  isImportDeclaration,
  isNamedImports,
  isObjectLiteralExpression,
  isPrefixUnaryExpression,
  isPropertyAccessExpression,
  isPropertyAssignment,
  isReturnStatement,
  isStringLiteral,
  isVariableDeclaration,
} from "typescript/unstable/ast/is";
import { type CodeFile, type Finding, finding, isTest, nodesOf, type Tree } from "./tree.ts";

/** Checks that every test asserts something, and that a skipped case prints its reason. */
export function checkTestBodies(tree: Tree): Finding[] {
  const tests = tree.code.filter(({ path }) => isTest(path));
  const asserting = assertingNames(tests);
  return tests.flatMap((file) => {
    const names = asserting.get(file.path) ?? new Set();
    const makers = new Set(file.nodes.flatMap(makerOf));
    return file.nodes.flatMap((node) => [
      ...checkAssertion(file, node, { names, makers }),
      ...checkSilence(file, node),
    ]);
  });
}

interface Known {
  /** Functions that assert. */
  readonly names: ReadonlySet<string>;
  /** Functions that turn their arguments into a test. */
  readonly makers: ReadonlySet<string>;
}

function checkAssertion(file: CodeFile, node: Node, { names, makers }: Known): Finding[] {
  if (!isCallExpression(node) || !isIdentifier(node.expression)) return [];
  const isMade = makers.has(node.expression.text);
  if (!isMade && !isTestCall(node)) return [];
  const body = node.arguments.findLast((argument) => isFunction(argument) || isIdentifier(argument));
  if (body === undefined || (isMade && !isFunction(body)) || takesName(node)) return [];
  return wordsOf(body).some((word) => names.has(word))
    ? []
    : [finding(file, node, "a test without an assertion proves nothing")];
}

const TESTS = new Set(["it", "test"]);
const SUITES = new Set([...TESTS, "describe", "suite"]);

function isTestCall(node: Node, of: ReadonlySet<string> = TESTS): node is CallExpression {
  return isCallExpression(node) && isIdentifier(node.expression) && of.has(node.expression.text);
}

/**
 * Whether this is `it(name, …)` inside a helper that takes the test's name and body. This call itself is not
 * checked; instead, each call of the helper is checked as a test.
 */
function takesName(node: CallExpression): boolean {
  const [name] = node.arguments;
  return name !== undefined && isTestCall(node) && isIdentifier(name) && name.text === "name";
}

function makerOf(node: Node): string[] {
  if (!isTestCall(node) || !takesName(node)) return [];
  let at: Node | undefined = node;
  while (at !== undefined && nameOf(at) === null) at = at.parent;
  const name = at === undefined ? null : nameOf(at);
  return name === null ? [] : [name];
}

function checkSilence(file: CodeFile, node: Node): Finding[] {
  const skip = isTestCall(node, SUITES) ? skipOption(node) : undefined;
  if (skip !== undefined && isUnexplained(file, skip))
    return [finding(file, node, "a skipped test must print its reason: set skip to a text or false")];
  if (!isIfStatement(node) || node.elseStatement !== undefined || !isInTest(node)) return [];
  const then = isBlock(node.thenStatement) ? node.thenStatement.statements.at(-1) : node.thenStatement;
  return then !== undefined && isReturnStatement(then) && then.expression === undefined
    ? [finding(file, node, "a test that returns early is skipped in silence; use `return t.skip(reason)`")]
    : [];
}

/** Returns whether a statement is directly in the body of a test or suite. */
function isInTest(node: Node): boolean {
  const body: Node | undefined = node.parent.parent;
  return body !== undefined && isFunction(body) && isTestCall(body.parent, SUITES);
}

function skipOption(call: CallExpression): Node | undefined {
  return call.arguments
    .filter((argument) => isObjectLiteralExpression(argument))
    .flatMap(({ properties }) => [...properties])
    .find(
      (property) =>
        isPropertyAssignment(property) && isIdentifier(property.name) && property.name.text === "skip",
    );
}

const TRUTHS = new Set([
  SyntaxKind.EqualsEqualsEqualsToken,
  SyntaxKind.ExclamationEqualsEqualsToken,
  SyntaxKind.LessThanToken,
  SyntaxKind.GreaterThanToken,
]);

function isUnexplained(file: CodeFile, property: Node): boolean {
  const given = isPropertyAssignment(property) ? property.initializer : property;
  const value = isIdentifier(given) ? (initializerOf(file, given.text) ?? given) : given;
  if (isPrefixUnaryExpression(value)) return value.operator === SyntaxKind.ExclamationToken;
  return isBinaryExpression(value) && TRUTHS.has(value.operatorToken.kind);
}

function initializerOf(file: CodeFile, name: string): Node | undefined {
  const found = file.nodes.find(
    (node) => isVariableDeclaration(node) && isIdentifier(node.name) && node.name.text === name,
  );
  return found !== undefined && isVariableDeclaration(found) ? found.initializer : undefined;
}

/** Returns for each file the names that assert: `assert`, and every function that uses an asserting name. */
function assertingNames(files: readonly CodeFile[]): ReadonlyMap<string, ReadonlySet<string>> {
  const known = new Map(files.map(({ path }) => [path, new Set(["assert"])]));
  const defined = files.flatMap((file) => file.nodes.flatMap((node) => definitionOf(file, node)));
  const imported = files.flatMap((file) => file.nodes.flatMap((node) => importsOf(file, node)));
  for (let grows = true; grows;) {
    grows = false;
    const learn = (path: string, name: string): void => {
      if (known.get(path)?.has(name) !== false) return;
      known.get(path)?.add(name);
      grows = true;
    };
    for (const { path, name, words } of defined)
      if (words.some((word) => known.get(path)?.has(word))) learn(path, name);
    for (const { path, name, from } of imported) if (known.get(from)?.has(name)) learn(path, name);
  }
  return known;
}

interface Definition {
  readonly path: string;
  readonly name: string;
  readonly words: readonly string[];
}

function definitionOf({ path }: CodeFile, node: Node): Definition[] {
  const name = nameOf(node);
  return name === null ? [] : [{ path, name, words: wordsOf(node) }];
}

function importsOf({ path }: CodeFile, node: Node): { path: string; name: string; from: string }[] {
  if (!isImportDeclaration(node) || !isStringLiteral(node.moduleSpecifier)) return [];
  const from = posix.join(posix.dirname(path), node.moduleSpecifier.text);
  return importedNames(node).map((name) => ({ path, name, from }));
}

function importedNames(node: ImportDeclaration): string[] {
  const bindings = node.importClause?.namedBindings;
  if (bindings === undefined || !isNamedImports(bindings)) return [];
  return bindings.elements.map(({ name }) => name.text);
}

function isFunction(node: Node): boolean {
  return isArrowFunction(node) || isFunctionExpression(node);
}

function nameOf(node: Node): string | null {
  if (isFunctionDeclaration(node)) return node.name?.text ?? null;
  if (!isVariableDeclaration(node) || !isIdentifier(node.name)) return null;
  return node.initializer !== undefined && isFunction(node.initializer) ? node.name.text : null;
}

/** Returns the names used below a node, except those after a dot. */
function wordsOf(node: Node): string[] {
  return nodesOf(node).flatMap((each) => {
    if (!isIdentifier(each)) return [];
    return isPropertyAccessExpression(each.parent) && each.parent.name === each ? [] : [each.text];
  });
}
