import { isPlaceholder } from "./name.ts";
import type { Secret } from "./shape.ts";

const SCHEME = /[A-Za-z][A-Za-z0-9+]{0,24}$/;
/** Schemes of databases and other servers. People write unescaped slashes into their passwords. */
const DATABASE =
  /^(?:postgres|postgresql|mysql|mariadb|mongodb|mongodb\+srv|redis|rediss|amqp|amqps|mssql|sqlserver|clickhouse|cockroachdb|neo4j|ldap|ldaps|smtp|smtps|ftp|sftp)$/i;
const TOKEN_MIN = 20;

/** Finds the password in `scheme://user:password@host`; scheme, user and host stay visible. */
export function passwordsInAddresses(text: string): Secret[] {
  const found = [...matching(text, "%40", ENCODED), ...matching(text, "jdbc:", ORACLE)];
  if (!text.includes("://") && !text.includes(":\\/\\/")) return found;
  for (const mark of text.matchAll(/:(?:\/\/|\\\/\\\/)/g)) {
    const scheme = SCHEME.exec(text.slice(Math.max(0, mark.index - 25), mark.index))?.[0];
    if (scheme === undefined) continue;
    const start = mark.index + mark[0].length;
    const end = userEnd(text, start, DATABASE.test(scheme));
    if (end === null || text.startsWith("sha256:", end + 1)) continue;
    const secret = secretOf(text.slice(start, end), /^(?:https?|git|git\+https)$/i.test(scheme));
    if (secret !== null) found.push({ start: start + secret.at, end, kind: secret.kind });
  }
  return found;
}

/** An address that is encoded inside another: `url=https%3A%2F%2Fuser%3Apassword%40host`. */
const ENCODED =
  /%3A%2F%2F(?:[^\s"'`<>&%]|%(?!2F|3A|40)){0,128}%3A((?:[^\s"'`<>&%]|%(?!2F|3A|40)){1,256})(?=%40)/gi;
const ORACLE = /jdbc:oracle:\w{1,8}:[^\s"'`/@:\\]{1,128}\/([^\s"'`@\\]{1,256})(?=\\{0,2}@)/gi;

/** Every match contains `sign`, so a text without it is not searched. A match ends with the password. */
function matching(text: string, sign: string, pattern: RegExp): Secret[] {
  if (!text.includes(sign)) return [];
  return [...text.matchAll(pattern)].flatMap(({ index, 0: whole, 1: password = "" }) => {
    const end = index + whole.length;
    return isPlaceholder(password) ? [] : [{ start: end - password.length, end, kind: "password" }];
  });
}

/** User, password and host. Text from other sessions has `\@` instead of `@`, and `\\@` inside JSON. */
const AUTHORITY = /(?:\[redacted: [a-z0-9 .]{1,32}\]|[^\s"'`<>/?#,\\]|\\{1,2}@){0,512}/y;
/** The rest of a password that contains `/`, `?` or `#`. Does not match `?name=`, which begins a query. */
const ADDRESS = /(?!\?[\w.]{1,64}=)[^\s"'`<>,\\@]{0,256}(?=\\{0,2}@)/y;
const WEB_ADDRESS = /(?!\?[\w.]{1,64}=)[^\s"'`<>,\\@/]{0,256}(?=\\{0,2}@[\w[])/y;

/** Returns where user and password end: at the last `@` before the host. */
function userEnd(text: string, start: number, isDatabase: boolean): number | null {
  AUTHORITY.lastIndex = start;
  const authority = AUTHORITY.exec(text)?.[0] ?? "";
  const found = authority.lastIndexOf("@");
  if (found !== -1) return start + authority.slice(0, found).replace(/\\{1,2}$/, "").length;
  const end = start + authority.length;
  // The address is cut off by `…`. Up to five digits after `:` may be a port; anything else is a password.
  if (authority.endsWith("…") && /:(?!\d{0,5}…)/.test(authority)) return end - 1;
  if (!/^[^:]*:(?!\d{0,5}$)/.test(authority) || !/[/?#]/.test(text[end] ?? "")) return null;
  const address = isDatabase ? ADDRESS : WEB_ADDRESS;
  address.lastIndex = end;
  return address.test(text) ? address.lastIndex : null;
}

function secretOf(user: string, isWeb: boolean): { at: number; kind: string } | null {
  const colon = user.replaceAll(/\[redacted:/g, "[redacted ").indexOf(":");
  if (colon !== -1) {
    return isPlaceholder(user.slice(colon + 1)) ? null : { at: colon + 1, kind: "password" };
  }
  const isToken = user.length >= TOKEN_MIN && /^\w[\w-]*$/.test(user) && /\d/.test(user);
  return isWeb && isToken ? { at: 0, kind: "token" } : null;
}
