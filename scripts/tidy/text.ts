import type { Finding, TreeFile } from "./tree.ts";

// The patterns are put together from pieces, so that this file does not match its own rules.
const RULES: readonly (readonly [RegExp, string])[] = [
  [
    new RegExp(["\\bTO", "DO\\b|\\bFIX", "ME\\b|\\bXX", "X\\b"].join("")),
    "finish the work before you commit it",
  ],
  [new RegExp(["\\bfor", "now\\b"].join(" "), "i"), "commit only what is meant to stay"],
  [/(?<![\w.~$}\])-])\/(?:work|root)\/[\w.-]/, "a path that exists on one machine only"],
  [/(?<![\w.~$}\])-])\/(?:home|Users)\/[\w.-]/, "a path that exists on one machine only"],
  [/\b[a-z]:\\users\\/i, "a path that exists on one machine only"],
  [
    new RegExp(["https?:\\/\\/[\\w.-]*(?:regis", "try|artifac", "tory|nexus|npm-)[\\w.-]*"].join(""), "i"),
    "a registry's address",
  ],
  [new RegExp(["_auth", "Token\\b"].join("")), "a credential's name"],
];

/** Checks the rules for every tracked file, in any language. */
export function checkText({ path, text }: TreeFile): Finding[] {
  return text.split("\n").flatMap((line, index) =>
    RULES.flatMap(([pattern, why]) => {
      const found = pattern.exec(line);
      return found === null ? [] : [{ path, line: index + 1, text: `"${found[0].trim()}": ${why}` }];
    }),
  );
}
