/** A value that both databases can bind. Booleans are 0 and 1, JSON is text, times are integers. */
export type Param = string | number | null;
export type Row = readonly unknown[];

/** A statement or a part of one, with its parameters. */
export interface Sql {
  readonly text: string;
  readonly params: readonly Param[];
}

/** Runs statements. Rows are arrays in the order of the columns; `run` returns the number of changed rows. */
export interface Query {
  all(statement: Sql): Promise<Row[]>;
  get(statement: Sql): Promise<Row | null>;
  run(statement: Sql): Promise<number>;
}

/**
 * Builds a statement: parameters become `?`, nested pieces become part of the text. A call site reuses its
 * text while its nested pieces stay the same, so that statement caches get the same string.
 */
export function sql(strings: TemplateStringsArray, ...values: readonly (Param | Sql)[]): Sql {
  const known = built.get(strings);
  if (known !== undefined && samePieces(known.pieces, values)) {
    return { text: known.text, params: paramsIn(values, known.flat) };
  }
  let text = strings[0] ?? "";
  for (const [i, value] of values.entries()) {
    text += (isSql(value) ? value.text : "?") + (strings[i + 1] ?? "");
  }
  const pieces = values.map((value) => (isSql(value) ? value.text : null));
  const flat = pieces.every((piece) => piece === null);
  built.set(strings, { text, pieces, flat });
  return { text, params: paramsIn(values, flat) };
}

/** Without nested pieces all values are parameters, and the array is used unchanged. */
function paramsIn(values: readonly (Param | Sql)[], flat: boolean): readonly Param[] {
  return flat ? (values as readonly Param[]) : paramsOf(values);
}

/** Text that goes into the statement unchanged. It must never come from outside. */
export function raw(text: string): Sql {
  return { text, params: [] };
}

/** `(?, ?, ?)` for `IN`; an empty list matches nothing. */
export function list(values: readonly Param[]): Sql {
  return values.length === 0 ? NOTHING : { text: placeholders(values.length), params: values };
}

export function and(conditions: readonly Sql[]): Sql {
  return {
    text: conditions.map((condition) => condition.text).join(" AND "),
    params: conditions.flatMap((condition) => condition.params),
  };
}

/** `(?, ?, …)` for one row; equal widths share one string. */
export function placeholders(width: number): string {
  let text = widths.get(width);
  if (text === undefined) {
    text = `(${Array.from({ length: width }, () => "?").join(", ")})`;
    widths.set(width, text);
  }
  return text;
}

/** Splits rows for several statements, each small enough to be cached and to stay below the parameter limit. */
export function* inBatches<T>(rows: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < rows.length; at += ROWS_MAX) yield rows.slice(at, at + ROWS_MAX);
}

/** Converts `?` to PostgreSQL's numbered parameters. Query texts contain no literal question mark. */
export function numbered(text: string): string {
  let n = 0;
  return text.replaceAll("?", () => `$${++n}`);
}

const ROWS_MAX = 32;
const NOTHING: Sql = { text: "(NULL)", params: [] };
const widths = new Map<number, string>();
const built = new WeakMap<
  TemplateStringsArray,
  { text: string; pieces: readonly (string | null)[]; flat: boolean }
>();

function isSql(value: Param | Sql): value is Sql {
  return typeof value === "object" && value !== null;
}

function samePieces(pieces: readonly (string | null)[], values: readonly (Param | Sql)[]): boolean {
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    const piece = value !== undefined && isSql(value) ? value.text : null;
    if (piece !== pieces[i]) return false;
  }
  return true;
}

function paramsOf(values: readonly (Param | Sql)[]): Param[] {
  const params: Param[] = [];
  for (const value of values) {
    if (isSql(value)) params.push(...value.params);
    else params.push(value);
  }
  return params;
}
