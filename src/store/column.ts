import { DamagedValue } from "./problem.ts";
import type { Query, Row, Sql } from "./sql.ts";

/**
 * How a column is written. `plain`: unchanged; for ids, numbers, paths and words from our own lists. `text`:
 * redacted; for user and agent text. `bool`: as 1 or 0. `json`: as JSON text, redacted. `held` and
 * `heldJson`: like `text` and `json` but not redacted. Either an agent has yet to receive the value, and the
 * writer must redact it afterwards (`Table.redacted`); or the value is already redacted.
 */
export type Kind = "plain" | "text" | "bool" | "json" | "held" | "heldJson";

/** The type of a column's values, which decides how they are read. */
type Form = "text" | "number" | "flag" | "object" | "list";

export interface Column<T> {
  readonly kind: Kind;
  readonly form: Form;
  readonly isNullable: boolean;
  /** Never set. It carries the type of the values for the compiler. */
  readonly reads?: T;
}

export type Columns<R> = { readonly [F in keyof R]-?: Column<R[F]> };

/** Ids, paths and words from our own lists; never redacted. */
export const word = <T extends string>(): Column<T> => column("plain", "text");

export const number = (): Column<number> => column("plain", "number");

/** A boolean, stored as 1 or 0. */
export const flag = (): Column<boolean> => column("bool", "flag");

/** User or agent text, redacted. */
export const prose = (): Column<string> => column("text", "text");

/** User or agent text, written unredacted because an agent has yet to receive it. */
export const heldProse = (): Column<string> => column("held", "text");

/** An object as JSON, redacted. Its inner shape is trusted, not checked. */
export const json = <T extends object>(): Column<T> => column("json", "object");

/** An object as JSON, written unchanged: an agent has yet to receive it, or it is already redacted. */
export const heldJson = <T extends object>(): Column<T> => column("heldJson", "object");

/** A list as JSON, redacted. */
export const jsonList = <T>(): Column<T[]> => column("json", "list");

function column(kind: Kind, form: Form): Column<never> {
  return { kind, form, isNullable: false };
}

export function maybe<T>(column: Column<T>): Column<T | null> {
  return { ...column, isNullable: true };
}

/** The type of the record that a row with these columns is read into. */
export type RecordOf<C> = { -readonly [F in keyof C]: C[F] extends Column<infer T> ? T : never };

type Values<C extends readonly Column<unknown>[]> = {
  -readonly [I in keyof C]: C[I] extends Column<infer T> ? T : never;
};

/** Reads one value of a row. `name` identifies the value in an error message. */
export function valueOf<T>(value: unknown, column: Column<T>, name: string | number = 0): T {
  return decoded(column, value, name) as T;
}

/** Reads the first values of a row, one per column. */
export function valuesOf<const C extends readonly Column<unknown>[]>(row: Row, ...columns: C): Values<C> {
  return columns.map((column, at) => decoded(column, row[at], at)) as Values<C>;
}

/** Returns the first value of the first row, or null if there is no row. */
export async function firstOf<T>(q: Query, statement: Sql, column: Column<T>): Promise<T | null> {
  return reading(q, only(column)).one(statement);
}

/** Returns functions that run a statement and read its rows with `read`. */
export function reading<T>(q: Query, read: (row: Row) => T) {
  return {
    async one(statement: Sql): Promise<T | null> {
      const row = await q.get(statement);
      return row === null ? null : read(row);
    },
    async many(statement: Sql): Promise<T[]> {
      return (await q.all(statement)).map(read);
    },
  };
}

/** Returns a function that reads the first value of a row. */
export function only<T>(column: Column<T>): (row: Row) => T {
  return (row) => valueOf(row[0], column);
}

/** Returns the first value of the first row, or 0 if there is no row. */
export async function numberOf(q: Query, statement: Sql): Promise<number> {
  return (await firstOf(q, statement, number())) ?? 0;
}

/** Returns a function that turns a row into a record. The row's values must be in these columns' order. */
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

export function fieldsOf<R extends object>(columns: Columns<R>): (keyof R & string)[] {
  return Object.keys(columns) as (keyof R & string)[];
}

/** Decodes a value. Throws an error that names the column if Kinfold cannot have written this value. */
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

/** A value without a name is identified by its position in the row. */
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
