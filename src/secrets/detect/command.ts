import { hasFigure, isPlaceholder } from "./name.ts";
import type { Secret } from "./shape.ts";

/** The rest of one command. A pipe, a semicolon or `&&` ends it; a backslash continues it on the next line. */
const SAME_COMMAND = String.raw`(?=\s)(?:\\\r?\n|[^\n|;&]|[;&](?![\s&])){0,200}?`;
/** The secret may also be the first word of the next line: some logs print each argument on its own line. */
const REST = String.raw`${SAME_COMMAND}\s`;
const REST_OF_LINE = String.raw`${SAME_COMMAND}(?:[^\S\n]|(?<=\\\r?)\n)`;
/** The start of a word. The word may follow a line break or tab written as in JSON (`\n`, `\r`, `\t`). */
const WORD_START = String.raw`(?:(?<![\w.])|(?<=\\[nrt]))`;
const command = (names: string, secret: string, rest = REST): RegExp =>
  new RegExp(String.raw`${WORD_START}(?:${names})${rest}${secret}`, "g");

const BREAK = String.raw`(?:\s|\\{1,4}[nrt]){1,8}`;
const FIELD = String.raw`[^\s\\]{1,128}`;

/** Secrets in the syntax of one program. Each pattern ends with the secret; all repetitions are bounded. */
const SPELLINGS: readonly (readonly [kind: string, pattern: RegExp])[] = [
  ["credential", /(?<![A-Za-z0-9_])bearer(?: |%20|\+){1,4}([\w.~+/=-]{12,})/gi],
  [
    "password",
    command(
      "curl",
      String.raw`(?:-u|--user|-U|--proxy-user)[ =]{0,2}["']?[^\s:"']{1,128}:([^\s"'\\]{3,256})`,
    ),
  ],
  [
    "password",
    command("mysql|mysqldump|mysqladmin|mariadb", String.raw`-p["']?([^\s"'\\-][^\s"'\\]{2,256})`),
  ],
  ["password", /(?:(?<![\w.])|(?<=\\[nrt]))sshpass\s{1,4}-p\s{0,4}["']?([^\s"'\\]{3,256})/g],
  ["token", command("ngrok", String.raw`(?:add-)?(?:authtoken|api-key)\s{1,4}["']?([\w-]{20,256})`)],
  // `user/password@database`; `@` may be escaped. Only on the same line: an address on the next looks alike.
  [
    "password",
    command(
      "sqlplus|sqlldr|expdp|impdp|rman",
      String.raw`["']?[^\s/@"']{1,128}/([^\s@"'\\]{3,256})(?=\\{0,2}@)`,
      REST_OF_LINE,
    ),
  ],
  ["password", command("redis-cli", String.raw`-a\s{0,4}["']?([^\s"'\\]{3,256})`)],
  [
    "password",
    command(
      String.raw`(?:docker|podman|az|oc|helm registry)\slogin`,
      String.raw`-p[\s=]{1,4}["']?([^\s"'\\]{3,256})`,
    ),
  ],
  // A line of `.netrc`, also as written in JSON. The pattern is strict because prose also mentions logins and
  // passwords.
  [
    "password",
    new RegExp(
      String.raw`${WORD_START}(?:machine${BREAK}${FIELD}|default)${BREAK}login${BREAK}${FIELD}${BREAK}password${BREAK}((?:[^\s\\"]|\\(?!\\{0,3}[nrt"])){3,256})`,
      "g",
    ),
  ],
  [
    "password",
    /(?<=^|\\n)[ \t]{0,8}login[ \t]{1,8}\S{1,128}[ \t]{1,8}password[ \t]{1,8}(\S{3,256})(?=[ \t]{0,64}$)/gm,
  ],
  [
    "password",
    /(?:(?<!\w)IDENTIFIED|user\s{1,4}\S{1,80}\s{1,4}identified)\s{1,4}(?:with\s{1,4}\S{1,40}\s{1,4}|WITH\s{1,4}\S{1,40}\s{1,4})?(?:by|BY|AS)\s{1,4}(?:PASSWORD\s{1,4})?["']([^\s"'\\]{3,256})/g,
  ],
];

/** Every pattern of `SPELLINGS` contains one of these words, so a text without them is not searched. */
export const LEADS =
  /bearer|identified|curl|mysql|mariadb|sshpass|redis-cli|login|ngrok|sqlplus|sqlldr|expdp|impdp|rman/i;

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
