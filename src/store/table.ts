import { redactBriefly } from "../secrets/redact-long.ts";
import { placeholders, raw, type Param, type Row, type Sql } from "./sql.ts";

/**
 * How a column holds its value. `plain`: as it is, which is for ids, numbers, paths and words of our own.
 * `text`: what somebody wrote, without its secrets; `json`: the same for a value, as JSON text. `held` and
 * `heldJson` keep what somebody wrote as it was sent, because an agent has yet to receive it: who writes
 * them sees to it that they are redacted when it has (`redacted`).
 */
export type Kind = "plain" | "text" | "bool" | "json" | "held" | "heldJson";

/** One table's columns beside a record's fields; everything that can be prepared is prepared once. */
export interface Table<R extends object> {
  readonly name: string;
  /** The columns, in the order `record` expects them. */
  readonly columns: Sql;
  /** The same with a table's alias before each. */
  columnsOf(alias: string): Sql;
  record(row: Row): R;
  /** The kind of each column. */
  readonly kinds: ReadonlyMap<string, Kind>;
  /** The record without its secrets, as `insert` would write it; what is held stays. */
  clean(record: R): R;
  /** Those of the held fields that have a secret, without it. */
  redacted(record: Partial<R>): Partial<R>;
  /** One statement for all of them. */
  insert(records: readonly R[]): Sql;
  /** `a = ?, b = ?` for the fields that are given, or null when none is. */
  set(patch: Partial<R>): Sql | null;
}

export interface TableOptions<R> {
  /** Fields that `set` leaves alone, because they never change or the store itself counts them. */
  readonly fixed?: readonly (keyof R & string)[];
  /** Columns whose name is not the field's name in snake case. */
  readonly named?: Partial<Record<keyof R & string, string>>;
  /** Columns made from a field, for queries that must look inside JSON, which is opaque to them. */
  readonly derived?: readonly Derived<R>[];
}

export interface Derived<R> {
  readonly column: string;
  readonly from: keyof R & string;
  value(record: Partial<R>): Param;
}

export function table<R extends object>(
  name: string,
  kindOf: Readonly<Record<keyof R & string, Kind>>,
  options: TableOptions<R> = {},
): Table<R> {
  const fields = Object.keys(kindOf) as (keyof R & string)[];
  const columns = fields.map((field) => options.named?.[field] ?? snake(field));
  const kinds = fields.map((field) => kindOf[field]);
  const derived = options.derived ?? [];
  const width = fields.length;
  const widthAll = width + derived.length;
  const head = `INSERT INTO ${name} (${[...columns, ...derived.map((d) => d.column)].join(", ")}) VALUES `;
  const insertTexts: string[] = [];
  const fixed = new Set<string>(options.fixed ?? []);
  const settable = new Map<string, { assignment: string; kind: Kind }>();
  fields.forEach((field, i) => {
    if (!fixed.has(field))
      settable.set(field, { assignment: `${columns[i]} = ?`, kind: kinds[i] ?? "plain" });
  });
  const cleaning = cleaningOf(kindOf);
  return {
    name,
    kinds: new Map(columns.map((column, i) => [column, kinds[i] as Kind])),
    ...cleaning,
    columns: raw(columns.join(", ")),
    columnsOf: (alias) => raw(columns.map((column) => `${alias}.${column}`).join(", ")),
    record(row) {
      const record: Record<string, unknown> = {};
      for (let i = 0; i < width; i++) record[fields[i] as string] = decode(kinds[i] as Kind, row[i]);
      return record as R;
    },
    insert(records) {
      const text = (insertTexts[records.length] ??=
        head + Array.from(records, () => placeholders(widthAll)).join(", "));
      const params: Param[] = [];
      for (const record of records.map(cleaning.clean)) {
        for (let i = 0; i < width; i++) {
          params.push(encode(kinds[i] as Kind, record[fields[i] as keyof R]));
        }
        for (const made of derived) params.push(made.value(record));
      }
      return { text, params };
    },
    set(patch) {
      const params: Param[] = [];
      let text = "";
      for (const field in patch) {
        const column = settable.get(field);
        const value = patch[field];
        if (column === undefined || value === undefined) continue;
        text += text === "" ? column.assignment : `, ${column.assignment}`;
        params.push(encode(column.kind, withoutSecrets(column.kind, value)));
      }
      for (const made of derived) {
        if (patch[made.from] === undefined) continue;
        text += `, ${made.column} = ?`;
        params.push(made.value(patch));
      }
      return text === "" ? null : { text, params };
    },
  };
}

function cleaningOf<R extends object>(
  kindOf: Readonly<Record<keyof R & string, Kind>>,
): Pick<Table<R>, "clean" | "redacted"> {
  const fields = Object.keys(kindOf) as (keyof R & string)[];
  const written = fields.filter((field) => kindOf[field] === "text" || kindOf[field] === "json");
  const held = fields.filter((field) => kindOf[field] === "held" || kindOf[field] === "heldJson");
  const cleaned = new WeakSet<R>();
  return {
    clean(record) {
      if (cleaned.has(record)) return record;
      const shown = { ...record };
      for (const field of written) shown[field] = withoutSecrets(kindOf[field], record[field]);
      cleaned.add(shown);
      return shown;
    },
    redacted(record) {
      const shown: Partial<R> = {};
      for (const field of held) {
        const value = record[field];
        const after = redactBriefly(value);
        if (after !== value) shown[field] = after;
      }
      return shown;
    },
  };
}

function withoutSecrets<T>(kind: Kind, value: T): T {
  if (kind === "json") return redactBriefly(value);
  return kind === "text" && typeof value === "string" ? redactBriefly(value) : value;
}

function encode(kind: Kind, value: unknown): Param {
  if (value === null || value === undefined) return null;
  if (kind === "json" || kind === "heldJson") return JSON.stringify(value);
  if (kind === "bool") return value === true ? 1 : 0;
  return value as Param;
}

function decode(kind: Kind, value: unknown): unknown {
  if (value === null) return null;
  if (kind === "json" || kind === "heldJson") return JSON.parse(value as string) as unknown;
  if (kind === "bool") return value === 1;
  return value;
}

function snake(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
