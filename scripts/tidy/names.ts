import type { Node } from "typescript/unstable/ast";
import {
  isClassDeclaration,
  isFunctionDeclaration,
  isIdentifier,
  isInterfaceDeclaration,
  isTypeAliasDeclaration,
  isVariableStatement,
} from "typescript/unstable/ast/is";
import { type CodeFile, type Finding, finding, isExported, type Tree, type TreeFile } from "./tree.ts";

/** Names that say nothing about the content. */
const EMPTY_WORDS = new Set(["util", "utils", "common", "helper", "helpers", "manager", "v2", "misc"]);

/**
 * Checks the names of files, tables and exports: their case, and words that mean nothing or that the
 * vocabulary forbids.
 */
export function checkNames(tree: Tree): Finding[] {
  const banned = bannedWords(tree);
  const say = (name: string): string | null => complaint(name, banned);
  return [
    ...tree.files.flatMap((file) => checkFileName(file, say)),
    ...tree.files.flatMap((file) => checkTables(file, say)),
    ...tree.code.flatMap((file) => checkExports(file, say)),
  ];
}

/**
 * Returns the words of the vocabulary's "Not" column, each with the word to use instead. Words marked * have
 * another valid use and are left out.
 */
export function bannedWords(tree: Pick<Tree, "files">): Map<string, string> {
  const vocabulary = tree.files.find(({ path }) => path === "VOCABULARY.md")?.text ?? "";
  const rows = vocabulary.split("\n").filter((line) => line.startsWith("| **"));
  return new Map(
    rows.flatMap((row) => {
      const [, word = "", , not = ""] = row.split("|").map((cell) => cell.trim());
      const names = not.split(",").map((name) => name.trim());
      return names
        .filter((name) => /^[a-z_]+$/.test(name))
        .map((name): [string, string] => [name.replaceAll("_", ""), word.replaceAll("*", "").toLowerCase()]);
    }),
  );
}

function complaint(name: string, banned: ReadonlyMap<string, string>): string | null {
  const parts = wordsOf(name);
  for (const part of [...parts, parts.join("")]) {
    if (EMPTY_WORDS.has(part)) return `"${part}" says nothing about what is inside`;
    const better = [part, part.replace(/s$/, ""), part.replace(/es$/, "")]
      .map((form) => banned.get(form))
      .find(Boolean);
    if (better !== undefined) return `"${part}" is not our word; VOCABULARY.md says ${better}`;
  }
  return null;
}

function wordsOf(name: string): string[] {
  const spaced = name.replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2").replaceAll(/([A-Z]+)([A-Z][a-z])/g, "$1 $2");
  return spaced
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean);
}

function checkFileName({ path }: TreeFile, say: (name: string) => string | null): Finding[] {
  if (!/^(?:src|scripts|test|bench|bin|docs|web)\//.test(path)) return [];
  // Files that an agent wrote keep the names that it gave them.
  if (path.includes("/fixtures/")) return [];
  const parts = path.split("/");
  const findings: Finding[] = [];
  for (const part of parts) {
    if (part === "README.md") continue;
    if (!/^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.[a-z0-9]+(?:-[a-z0-9]+)*)*$/.test(part)) {
      findings.push({ path, line: 1, text: `"${part}" is not kebab-case` });
    }
  }
  // Names in `docs` may contain forbidden words: a decision record may name a rejected alternative.
  const text = path.startsWith("docs/")
    ? null
    : say(
        parts
          .slice(1)
          .join("/")
          .replace(/\.[a-z]+$/, ""),
      );
  if (text !== null) findings.push({ path, line: 1, text });
  return findings;
}

function checkTables({ path, text }: TreeFile, say: (name: string) => string | null): Finding[] {
  if (!path.startsWith("src/")) return [];
  return [...text.matchAll(/\bcreate\s+(?:virtual\s+)?table\s+(?:if\s+not\s+exists\s+)?"?(\w+)/gi)].flatMap(
    (match) => {
      const complaint = say(match[1] ?? "");
      const line = text.slice(0, match.index).split("\n").length;
      return complaint === null ? [] : [{ path, line, text: `table ${match[1]}: ${complaint}` }];
    },
  );
}

function checkExports(file: CodeFile, say: (name: string) => string | null): Finding[] {
  return file.source.statements.filter(isExported).flatMap((node) =>
    declaredIn(node).flatMap(({ kind, name }) => {
      const text = say(name);
      return text === null ? [] : [finding(file, node, `${kind} ${name}: ${text}`)];
    }),
  );
}

interface Declared {
  readonly kind: "type" | "function" | "value";
  readonly name: string;
}

function declaredIn(node: Node): Declared[] {
  if (isInterfaceDeclaration(node) || isTypeAliasDeclaration(node))
    return [{ kind: "type", name: node.name.text }];
  if (isClassDeclaration(node)) return [{ kind: "type", name: node.name?.text ?? "" }];
  if (isFunctionDeclaration(node)) return [{ kind: "function", name: node.name?.text ?? "" }];
  if (!isVariableStatement(node)) return [];
  const names = node.declarationList.declarations.map(({ name }) => (isIdentifier(name) ? name.text : ""));
  return names.map((name) => ({ kind: "value", name }));
}
