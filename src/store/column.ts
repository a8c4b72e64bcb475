import { DamagedValue } from "./problem.ts";
import type { Query, Row, Sql } from "./sql.ts";

/**
 * How a column is written. `plain`: as it is, which is for ids, numbers, paths and words of our own.
 * `text`: what somebody wrote, without its secrets; `json`: the same for a value, as JSON text. `held` and
 * `heldJson` keep what somebody wrote as it was sent, because an agent has yet to receive it: who writes
 * them sees to it that they are redacted when it has (`redacted`).
 */
export type Kind = "plain" | "text" | "bool" | "json" | "held" | "heldJson";

/** What a column holds, which decides how it is read. */
type Form = "text" | "number" | "flag" | "object" | "list";

/** One column: how it is written, and what is read from it. */
export interface Column<T> {
  readonly kind: Kind;
  readonly form: Form;
  readonly isNullable: boolean;
  /** For the compiler only: the type of what is read. */
  readonly reads?: T;
}

/** A column for each field of a record. */
export type Columns<R> = { readonly [F in keyof R]-?: Column<R[F]> };

/** Ids, paths and words of our own. */
export function word<T extends string>(): Column<T> {
  return { kind: "plain", form: "text", isNullable: false };
}

/** Numbers and times. */
export function number(): Column<number> {
  return { kind: "plain", form: "number", isNullable: false };
}

/** Yes or no, kept as 1 and 0. */
export function flag(): Column<boolean> {
  return { kind: "bool", form: "flag", isNullable: false };
}

/** What somebody wrote, kept without its secrets. */
export function prose(): Column<string> {
  return { kind: "text", form: "text", isNullable: false };
}

/** What somebody wrote, kept as it was sent. */
export function heldProse(): Column<string> {
  return { kind: "held", form: "text", isNullable: false };
}

/** An object as JSON, kept without its secrets. It has the shape with which it was written. */
export function json<T extends object>(): Column<T> {
  return { kind: "json", form: "object", isNullable: false };
}

/** An object as JSON, kept as it was given. */
export function heldJson<T extends object>(): Column<T> {
  return { kind: "heldJson", form: "object", isNullable: false };
}

/** A list as JSON, kept without its secrets. */
export function jsonList<T>(): Column<T[]> {
  return { kind: "json", form: "list", isNullable: false };
}

/** The same column where there may be nothing. */
export function maybe<T>(column: Column<T>): Column<T | null> {
  return { kind: column.kind, form: column.form, isNullable: true };
}

type Values<C extends readonly Column<unknown>[]> = {
  -readonly [I in keyof C]: C[I] extends Column<infer T> ? T : never;
};

/** One value of a row. `name` says in an error where it was. */
export function valueOf<T>(value: unknown, column: Column<T>, name: string | number = 0): T {
  return decoded(column, value, name) as T;
}

/** The first values of a row, one for each column. */
export function valuesOf<const C extends readonly Column<unknown>[]>(row: Row, ...columns: C): Values<C> {
  return columns.map((column, at) => decoded(column, row[at], at)) as Values<C>;
}

/** The first value of the first row, or null where there is no row. */
export async function firstOf<T>(q: Query, statement: Sql, column: Column<T>): Promise<T | null> {
  const row = await q.get(statement);
  return row === null ? null : valueOf(row[0], column);
}

/** The first value of every row. */
export async function listOf<T>(q: Query, statement: Sql, column: Column<T>): Promise<T[]> {
  return (await q.all(statement)).map((row) => valueOf(row[0], column));
}

/** The number that a statement answers; 0 where there is no row. */
export async function numberOf(q: Query, statement: Sql): Promise<number> {
  return (await firstOf(q, statement, number())) ?? 0;
}

/** A function that makes records of rows whose values come in the order of these columns. */
export function readerOf<R extends object>(columns: Columns<R>, table = "a row"): (row: Row) => R {
  const parts = fieldsOf(columns).map((field) => ({
    field,
    column: columns[field],
    name: `${table}.${field}`,
  }));
  return (row) => {
    const record: Record<string, unknown> = {};
    let at = 0;
    for (const { field, column, name } of parts) record[field] = decoded(column, row[at++], name);
    return record as R;
  };
}

/** The fields of a record, as its columns name them. */
export function fieldsOf<R extends object>(columns: Columns<R>): (keyof R & string)[] {
  return Object.keys(columns) as (keyof R & string)[];
}

/** What we wrote is trusted; what cannot have been written by us is an error that says where it is. */
function decoded(column: Column<unknown>, value: unknown, name: string | number): unknown {
  if (value === null && column.isNullable) return null;
  switch (column.form) {
    case "text":
      if (typeof value === "string") return value;
      break;
    case "number":
      if (typeof value === "number") return value;
      break;
    case "flag":
      if (value === 1 || value === 0) return value === 1;
      break;
    case "object":
    case "list":
      if (typeof value === "string") return parsed(value, column.form, name);
  }
  throw damaged(name, `it should be ${WORDS[column.form]} and is ${shapeOf(value)}`);
}

function parsed(text: string, form: "object" | "list", name: string | number): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw damaged(name, "it is not JSON", { cause: error });
  }
  if (typeof value === "object" && value !== null && Array.isArray(value) === (form === "list")) return value;
  throw damaged(name, `it should be ${WORDS[form]} and is ${shapeOf(value)}`);
}

/** Where a value has no name, its position in the row is told. */
function damaged(name: string | number, what: string, options?: ErrorOptions): DamagedValue {
  return new DamagedValue(typeof name === "string" ? name : `value ${name + 1} of a row`, what, options);
}

const WORDS = {
  text: "text",
  number: "a number",
  flag: "0 or 1",
  object: "a JSON object",
  list: "a JSON list",
} as const;

function shapeOf(value: unknown): string {
  if (value === null || value === undefined) return "empty";
  return Array.isArray(value) ? "a list" : `of type ${typeof value}`;
}
