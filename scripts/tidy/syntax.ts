import { type CallExpression, type Node, SyntaxKind } from "typescript/unstable/ast";
import {
  isArrayLiteralExpression,
  isArrowFunction,
  isBlock,
  isCallExpression,
  isCatchClause,
  isClassDeclaration,
  isEnumDeclaration,
  isExportAssignment,
  isIdentifier,
  isModuleDeclaration,
  isNewExpression,
  isNoSubstitutionTemplateLiteral,
  isObjectLiteralExpression,
  isParenthesizedExpression,
  isPrefixUnaryExpression,
  isPropertyAccessExpression,
  isPropertyAssignment,
  isStringLiteral,
  isTemplateHead,
  isReturnStatement,
  isSourceFile,
} from "typescript/unstable/ast/is";
import { type CodeFile, type Finding, finding, isTest } from "./tree.ts";

type Rule = (node: Node, file: CodeFile) => string | null;

/** Checks the syntax rules. Some of them apply only to certain folders. */
export function checkSyntax(file: CodeFile): Finding[] {
  const rules = [
    defaultExport,
    looseType,
    runtimeType,
    emptyCatch,
    swallowedError,
    consoleUse,
    focusedTest,
    unseededProperty,
    impureDomain,
    processAccess,
    unfencedWrite,
    unseededChance,
    defaultPort,
  ];
  return file.nodes.flatMap((node) =>
    rules.flatMap((rule) => {
      const text = rule(node, file);
      return text === null ? [] : [finding(file, node, text)];
    }),
  );
}

const defaultExport: Rule = (node) => {
  const assigned = isExportAssignment(node);
  return assigned || node.kind === SyntaxKind.DefaultKeyword
    ? "a default export has no name of its own; export it by name"
    : null;
};

const looseType: Rule = (node) =>
  node.kind === SyntaxKind.AnyKeyword ? "`any` switches the compiler off; use `unknown` and look" : null;

const runtimeType: Rule = (node) => {
  if (isEnumDeclaration(node)) return "an enum cannot be stripped; use a union or a zod enum";
  return isModuleDeclaration(node) ? "a namespace cannot be stripped; use a module" : null;
};

const emptyCatch: Rule = (node) => {
  const text =
    "an empty catch hides what went wrong; handle it, or return with a comment that says why it is safe";
  if (isCatchClause(node)) return node.block.statements.length === 0 ? text : null;
  if (!isCallExpression(node) || !isPropertyAccessExpression(node.expression)) return null;
  if (node.expression.name.text !== "catch") return null;
  const handler = node.arguments[0];
  if (handler === undefined || !isArrowFunction(handler) || !isBlock(handler.body)) return null;
  return handler.body.statements.length === 0 ? text : null;
};

/** A `.catch` that returns a constant loses the error, so a comment must say why that is right. */
const swallowedError: Rule = (node, file) => {
  if (!isCallExpression(node) || !isPropertyAccessExpression(node.expression)) return null;
  const [handler] = node.arguments;
  if (node.expression.name.text !== "catch" || handler === undefined) return null;
  if (!isArrowFunction(handler) || !isConstant(returned(handler.body)) || hasComment(node, file)) return null;
  return "`.catch` turns every error into a constant; add a comment that says why that is right";
};

/** Returns the expression that a function returns, if the function does nothing else. */
function returned(body: Node): Node | undefined {
  if (!isBlock(body)) return isParenthesizedExpression(body) ? body.expression : body;
  const [only, ...more] = body.statements;
  return only !== undefined && more.length === 0 && isReturnStatement(only) ? only.expression : undefined;
}

const CONSTANTS = new Set([
  SyntaxKind.NullKeyword,
  SyntaxKind.TrueKeyword,
  SyntaxKind.FalseKeyword,
  SyntaxKind.StringLiteral,
  SyntaxKind.NumericLiteral,
  SyntaxKind.NoSubstitutionTemplateLiteral,
]);

function isConstant(node: Node | undefined): boolean {
  if (node === undefined) return false;
  if (CONSTANTS.has(node.kind)) return true;
  if (isIdentifier(node)) return node.text === "undefined" || /^[A-Z][A-Z_\d]*$/.test(node.text);
  if (isArrayLiteralExpression(node)) return node.elements.every(isConstant);
  if (isObjectLiteralExpression(node))
    return node.properties.every((each) => isPropertyAssignment(each) && isConstant(each.initializer));
  return isPrefixUnaryExpression(node) && isConstant(node.operand);
}

/** Whether a comment is above, inside or after the statement (or object property) that contains a node. */
function hasComment(node: Node, { text }: CodeFile, comment = /\/\/|\/\*/): boolean {
  let at = node;
  while (!holdsStatements(at.parent)) at = at.parent;
  const behind = text.slice(at.getEnd()).split("\n", 1)[0] ?? "";
  const code = text.slice(at.getFullStart(), at.getEnd()).replaceAll(STRING, "");
  return comment.test(code + behind);
}

/** Matches strings. They are removed, so that a `//` inside a string (a URL) is not taken for a comment. */
const STRING = /(["'`])(?:\\.|(?!\1)[^\\\n])*\1/g;

function holdsStatements(node: Node): boolean {
  return isBlock(node) || isSourceFile(node) || isClassDeclaration(node) || isObjectLiteralExpression(node);
}

const consoleUse: Rule = (node, { path }) => {
  if (path === "src/log.ts" || /^(?:src\/cli|scripts|bench)\//.test(path)) return null;
  return isPropertyAccessExpression(node) &&
    isIdentifier(node.expression) &&
    node.expression.text === "console"
    ? "console is for scripts, bench and the CLI; daemon code writes to its log"
    : null;
};

const TESTS = new Set(["describe", "it", "suite", "test"]);

const focusedTest: Rule = (node, { path }) => {
  if (!isTest(path) || !isCallExpression(node)) return null;
  const callee = node.expression;
  if (isPropertyAccessExpression(callee)) {
    const verb = callee.name.text;
    const ofTests = isIdentifier(callee.expression) && TESTS.has(callee.expression.text);
    if (ofTests && verb === "only") return "`.only` silences every other test";
    if (ofTests && (verb === "skip" || verb === "todo"))
      return `\`.${verb}\` has no reason; use { skip: "why" }`;
    const byContext = isIdentifier(callee.expression) && verb === "skip" && node.arguments.length === 0;
    return byContext ? "a skipped test needs a reason" : null;
  }
  return isIdentifier(callee) && TESTS.has(callee.text) ? focusedOption(node) : null;
};

function focusedOption(call: CallExpression): string | null {
  for (const argument of call.arguments) {
    if (!isObjectLiteralExpression(argument)) continue;
    for (const property of argument.properties) {
      if (!isPropertyAssignment(property) || !isIdentifier(property.name)) continue;
      if (property.initializer.kind !== SyntaxKind.TrueKeyword) continue;
      if (property.name.text === "only") return "`only` silences every other test";
      if (["skip", "todo"].includes(property.name.text)) return "a skipped test needs a reason";
    }
  }
  return null;
}

const SEEDS = "src/testing/seeds.ts";

/** fast-check draws a new seed in every run unless it is given one. */
const unseededProperty: Rule = (node, { path }) => {
  if (!isTest(path) || path === SEEDS || !isPropertyAccessExpression(node)) return null;
  if (!isIdentifier(node.expression) || node.expression.text !== "fc") return null;
  return ["assert", "check", "sample"].includes(node.name.text)
    ? `a property runs with the listed seeds, so that a red run can be repeated; use checkProperty of ${SEEDS}`
    : null;
};

const AMBIENT = new Set([
  "process",
  "fetch",
  "crypto",
  "performance",
  "setTimeout",
  "setInterval",
  "setImmediate",
  "queueMicrotask",
]);

/** Code in `domain` decides only from its arguments, so the same input always gives the same answer. */
const impureDomain: Rule = (node, { path }) => {
  if (!path.startsWith("src/domain/") || isTest(path)) return null;
  const text = "the domain has no await, clock, randomness or I/O; take it as an argument";
  if (node.kind === SyntaxKind.AwaitExpression || node.kind === SyntaxKind.AsyncKeyword) return text;
  if (isNewExpression(node) && isIdentifier(node.expression) && node.expression.text === "Date") {
    return (node.arguments?.length ?? 0) === 0 ? text : null;
  }
  if (isCallExpression(node) && isIdentifier(node.expression))
    return AMBIENT.has(node.expression.text) ? text : null;
  if (!isPropertyAccessExpression(node) || !isIdentifier(node.expression)) return null;
  const [object, name] = [node.expression.text, node.name.text];
  const asked = `${object}.${name}`;
  return AMBIENT.has(object) || asked === "Date.now" || asked === "Math.random" ? text : null;
};

/**
 * Only `src/system` may read /proc or signal a process. A /proc path in an array literal is allowed, because
 * it is an argument of a program that we start.
 */
const processAccess: Rule = (node, { path }) => {
  if (!path.startsWith("src/") || path.startsWith("src/system/") || isTest(path)) return null;
  const text = "only src/system reads /proc or signals a process; use src/system/proc.ts";
  if (isPropertyAccessExpression(node) && isIdentifier(node.expression))
    return node.expression.text === "process" && node.name.text === "kill" ? text : null;
  if (!isStringLiteral(node) && !isNoSubstitutionTemplateLiteral(node) && !isTemplateHead(node)) return null;
  return /^\/proc(?:\/|$)/.test(node.text) && !isArrayLiteralExpression(node.parent) ? text : null;
};

/**
 * A write on behalf of an agent process must carry the process's fence, so that the store can refuse a late
 * write.
 */
const unfencedWrite: Rule = (node, file) => {
  if (!file.path.startsWith("src/engine/") || isTest(file.path) || !isCallExpression(node)) return null;
  const { expression: callee } = node;
  if (!isPropertyAccessExpression(callee) || callee.name.text !== "write") return null;
  const of = isPropertyAccessExpression(callee.expression) ? callee.expression.name : callee.expression;
  if (!isIdentifier(of) || of.text !== "store" || node.arguments.length > 2) return null;
  if (hasComment(node, file, /\/\/ No fence: /)) return null;
  return "a write of the engine must name its process: store.write(rootId, fence, work); if it is for no process, say why in a comment, `// No fence: …`";
};

/** A test that draws other numbers in each run cannot be repeated when it fails. */
const unseededChance: Rule = (node, { path }) =>
  /\.(?:test|spec)\.ts$|\/support\//.test(path) &&
  isPropertyAccessExpression(node) &&
  node.getText() === "Math.random"
    ? "a test that draws without a seed cannot be repeated; use seedsOf and randomFrom of src/testing/seeds.ts"
    : null;

/** Two runs side by side, or a run beside a real Kinfold, would both want the default port. */
const defaultPort: Rule = (node, { path }) => {
  if (!isTest(path) || !isStringLiteral(node) || node.text !== "up") return null;
  const { parent } = node;
  const words = isArrayLiteralExpression(parent) ? parent.elements : null;
  const all = words ?? (isCallExpression(parent) ? parent.arguments : null);
  if (all === null || all[0] !== node) return null;
  const isGiven = all.some((word) => isStringLiteral(word) && word.text.startsWith("--port"));
  return isGiven ? null : "`kinfold up` without a port takes the default port; add --port 0";
};
