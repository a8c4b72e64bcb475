import type { Node, SignatureDeclaration } from "typescript/unstable/ast";
import {
  isArrowFunction,
  isCallExpression,
  isConstructorDeclaration,
  isFunctionDeclaration,
  isFunctionExpression,
  isFunctionTypeNode,
  isGetAccessorDeclaration,
  isIdentifier,
  isMethodDeclaration,
  isMethodSignatureDeclaration,
  isSetAccessorDeclaration,
} from "typescript/unstable/ast/is";
import { type CodeFile, type Finding, finding, isTest, lineOf, nodesOf } from "./tree.ts";

const FILE_LINES_MAX = 400;
const TEST_FILE_LINES_MAX = 600;
const FUNCTION_LINES_MAX = 70;
const PARAMETERS_MAX = 3;

/** Limits the length of both files and functions. If only one had a limit, the other would grow. */
export function checkSizes(file: CodeFile): Finding[] {
  const linesMax = isTest(file.path) ? TEST_FILE_LINES_MAX : FILE_LINES_MAX;
  const lines = file.text.split("\n").length - 1;
  const long =
    lines > linesMax ? [{ path: file.path, line: lines, text: `${lines} lines; at most ${linesMax}` }] : [];
  return [
    ...long,
    ...file.nodes.flatMap((node) => [...checkFunction(file, node), ...checkParameters(file, node)]),
  ];
}

/**
 * Limits the number of positional parameters, because callers easily swap them. The fields of an object have
 * names and cannot be swapped.
 */
function checkParameters(file: CodeFile, node: Node): Finding[] {
  if (!isFunction(node) || isTest(file.path) || file.path.startsWith("bench/")) return [];
  const count = node.parameters.filter(({ name }) => !isIdentifier(name) || name.text !== "this").length;
  const text = `a function of ${count} parameters; after ${PARAMETERS_MAX} take one object`;
  return count > PARAMETERS_MAX ? [finding(file, node, text)] : [];
}

function checkFunction(file: CodeFile, node: Node): Finding[] {
  if (!isFunction(node)) return [];
  const lines = lineOf(file, node.getEnd()) - lineOf(file, node.getStart(file.source)) + 1;
  if (lines <= FUNCTION_LINES_MAX || (isTest(file.path) && holdsTests(node))) return [];
  return [finding(file, node, `a function of ${lines} lines; at most ${FUNCTION_LINES_MAX}`)];
}

function isFunction(node: Node): node is SignatureDeclaration {
  return (
    isFunctionDeclaration(node) ||
    isFunctionExpression(node) ||
    isArrowFunction(node) ||
    isMethodDeclaration(node) ||
    isConstructorDeclaration(node) ||
    isGetAccessorDeclaration(node) ||
    isSetAccessorDeclaration(node) ||
    isMethodSignatureDeclaration(node) ||
    isFunctionTypeNode(node)
  );
}

/** A suite is exempt: it is a list of tests, and each test has its own limit. */
function holdsTests(node: Node): boolean {
  return (
    callsOne(node.parent, ["describe", "suite"]) || nodesOf(node).some((child) => callsOne(child, TESTS))
  );
}

const TESTS = ["describe", "it", "suite", "test"];

function callsOne(node: Node, names: readonly string[]): boolean {
  return isCallExpression(node) && isIdentifier(node.expression) && names.includes(node.expression.text);
}
