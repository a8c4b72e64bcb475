/** Returns a table's column names in order, from its CREATE TABLE statement. */
export function columnsOf(sql: string): string[] {
  return definitions(sql).flatMap((definition) => {
    const [name, isQuoted] = firstName(definition);
    return name === "" || (!isQuoted && CONSTRAINTS.has(name.toLowerCase())) ? [] : [name];
  });
}

/** Returns the columns of a plain index over all rows; empty for any other index. */
export function indexedColumns(sql: string): string[] {
  const names = definitions(sql).map(firstName);
  const isPlain = names.every(([name, , rest]) => name !== "" && rest.trim() === "");
  return isPlain && !/\)\s*where\b/iu.test(sql) ? names.map(([name]) => name) : [];
}

/** Returns the column that is an alias of the rowid, if there is one. */
export function rowidColumn(sql: string): string | null {
  const found = definitions(sql).find((text) => /^\s*\S+\s+integer\s+primary\s+key\b/iu.test(text));
  return found === undefined ? null : firstName(found)[0];
}

/** Looks for `WITHOUT ROWID` among the options after the statement's last parenthesis. */
export function isWithoutRowid(sql: string): boolean {
  return /\bwithout\s+rowid\b/iu.test(sql.slice(sql.lastIndexOf(")") + 1));
}

const CONSTRAINTS: ReadonlySet<string> = new Set(["constraint", "primary", "unique", "check", "foreign"]);
const CLOSING: Readonly<Record<string, string>> = { "'": "'", '"': '"', "`": "`", "[": "]" };

/** Returns the text between the first parenthesis and its closing one, split at commas. */
function definitions(sql: string): string[] {
  const found: string[] = [];
  let depth = 0;
  let text = "";
  for (const [part] of sql.matchAll(PARTS)) {
    if (part.startsWith("--") || part.startsWith("/*")) continue;
    if (part === ")") depth -= 1;
    const isCut = depth === 0 ? part === ")" : depth === 1 && part === ",";
    if (isCut) {
      found.push(text);
      text = "";
      if (depth === 0) return found;
    } else if (depth > 0) text += part;
    if (part === "(") depth += 1;
  }
  return found;
}

/** Matches one piece: a comment, a quoted name or text, a run of plain text, or a single character. */
const PARTS =
  /--[^\n]*|\/\*[^]*?(?:\*\/|$)|'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[^\]]*\]?|[^'"`[(),/-]+|[^]/gu;

function firstName(definition: string): [name: string, isQuoted: boolean, rest: string] {
  const text = definition.trim();
  const closing = CLOSING[text[0] ?? ""];
  if (closing !== undefined) {
    const end = text.indexOf(closing, 1);
    return end < 0 ? ["", true, ""] : [text.slice(1, end), true, text.slice(end + 1)];
  }
  const name = /^[^\s(]+/u.exec(text)?.[0] ?? "";
  return [name, false, text.slice(name.length)];
}
