import { hasFigure, isPlaceholder } from "./secret-name.ts";
import type { Secret } from "./secret-shape.ts";

/** Spellings of their own: each pattern ends with the secret. What is repeated in them is bounded. */
const SPELLINGS: readonly (readonly [kind: string, pattern: RegExp])[] = [
  ["credential", /(?<![A-Za-z0-9_])bearer(?: |%20|\+){1,4}([\w.~+/=-]{12,})/gi],
  [
    "password",
    /(?<![\w.])curl(?=\s)[^\n]{0,200}?\s(?:-u|--user|-U|--proxy-user)[ =]{0,2}["']?[^\s:"']{1,128}:([^\s"'\\]{3,256})/g,
  ],
  [
    "password",
    /(?<![\w.])(?:mysql|mysqldump|mysqladmin|mariadb)(?=\s)[^\n]{0,200}?\s-p([^\s"'\\-][^\s"'\\]{2,256})/g,
  ],
  [
    "password",
    /(?<![\w.])(?:sshpass\s{1,4}-p|redis-cli(?=\s)[^\n]{0,200}?\s-a)\s{0,4}["']?([^\s"'\\]{3,256})/g,
  ],
  [
    "password",
    /(?<![\w.])(?:docker|podman|az|oc|helm registry)\slogin(?=\s)[^\n]{0,200}?\s-p\s{1,4}["']?([^\s"'\\]{3,256})/g,
  ],
  ["password", /(?<![\w.])login\s{1,8}\S{1,128}\s{1,8}password\s{1,8}(\S{3,256})/g],
];

/** Each spelling has one of these in it. */
const LEADS = /bearer|curl|mysql|mariadb|sshpass|redis-cli|login/i;

/** Secrets that a command or a scheme before them gives away. */
export function spelledIn(text: string): Secret[] {
  if (!LEADS.test(text)) return [];
  const found: Secret[] = [];
  for (const [kind, pattern] of SPELLINGS) {
    for (const match of text.matchAll(pattern)) {
      const value = match[1] as string;
      const end = match.index + match[0].length;
      if (isPlaceholder(value) || (kind === "credential" && !hasFigure(value))) continue;
      found.push({ start: end - value.length, end, kind });
    }
  }
  return found;
}
