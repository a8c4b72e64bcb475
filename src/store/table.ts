import { redactBriefly } from "../secrets/redact-long.ts";
import { type Columns, fieldsOf, type Kind, readerOf } from "./column.ts";
import { placeholders, raw, type Param, type Row, type Sql } from "./sql.ts";

/** Maps a record's fields to a table's columns, and builds its statements. */
export interface Table<R extends object> extends Selected<R> {
  readonly name: string;
  /** Selects only these fields. */
  pick<F extends keyof R & string>(...fields: readonly F[]): Selected<Pick<R, F>>;
  /** How each column is read and written. */
  readonly declared: readonly Declared[];
  /** Returns the record as `insert` would write it: redacted, except for `held` and `heldJson` columns. */
  clean(record: R): R;
  /** Returns the `held` and `heldJson` fields that contain a secret, in redacted form. */
  redacted(record: Partial<R>): Partial<R>;
  /** Returns one statement that inserts all records. */
  insert(records: readonly R[]): Sql;
  /** Returns `a = ?, b = ?` for the given fields, or null if there are none. */
  set(patch: Partial<R>): Sql | null;
}

export interface Selected<R> {
  /** The columns, in the order that `record` expects. */
  readonly columns: Sql;
  /** The columns in the same order, each prefixed with a table alias. */
  columnsOf(alias: string): Sql;
  record(row: Row): R;
}

export interface Declared {
  readonly column: string;
  readonly kind: Kind;
  readonly form: string;
  readonly isNullable: boolean;
}

export interface TableOptions<R> {
  /** Fields that `set` ignores, because they never change or are counters that the store maintains. */
  readonly fixed?: readonly (keyof R & string)[];
  /** Columns whose name is not the snake-case form of the field's. */
  readonly named?: Partial<Record<keyof R & string, string>>;
  /** Columns derived from a JSON field, because queries cannot look inside JSON. */
  readonly derived?: readonly Derived<R>[];
}

export interface Derived<R> {
  readonly column: string;
  readonly from: keyof R & string;
  value(record: Partial<R>): Param;
}

export function table<R extends object>(
  name: string,
  of: Columns<R>,
  options: TableOptions<R> = {},
): Table<R> {
  const fields = fieldsOf(of).map((field) => {
    const { kind, form, isNullable } = of[field];
    return { field, column: options.named?.[field] ?? snake(field), kind, form, isNullable };
  });
  const columns = fields.map(({ column }) => column);
  const derived = options.derived ?? [];
  const width = fields.length + derived.length;
  const head = `INSERT INTO ${name} (${[...columns, ...derived.map((d) => d.column)].join(", ")}) VALUES `;
  const insertTexts: string[] = [];
  const fixed = new Set<string>(options.fixed ?? []);
  const settable = new Map<string, { assignment: string; kind: Kind }>();
  for (const { field, column, kind } of fields) {
    if (!fixed.has(field)) settable.set(field, { assignment: `${column} = ?`, kind });
  }
  const cleaning = cleaningOf(of);
  return {
    name,
    declared: fields,
    ...cleaning,
    ...selected(of, columns, name),
    pick(...some) {
      const named = fields.filter(({ field }) => some.some((each) => each === field));
      const part = Object.fromEntries(named.map(({ field }) => [field, of[field]])) as typeof of;
      return selected(
        part,
        named.map(({ column }) => column),
        name,
      );
    },
    insert(records) {
      const text = (insertTexts[records.length] ??=
        head + Array.from(records, () => placeholders(width)).join(", "));
      const params: Param[] = [];
      for (const record of records.map(cleaning.clean)) {
        for (const { field, kind } of fields) params.push(encode(kind, record[field]));
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

function selected<R extends object>(of: Columns<R>, columns: readonly string[], name: string): Selected<R> {
  return {
    columns: raw(columns.join(", ")),
    columnsOf: (alias) => raw(columns.map((column) => `${alias}.${column}`).join(", ")),
    record: readerOf(of, name),
  };
}

function cleaningOf<R extends object>(of: Columns<R>): Pick<Table<R>, "clean" | "redacted"> {
  const fields = fieldsOf(of);
  const written = fields.filter((field) => of[field].kind === "text" || of[field].kind === "json");
  const held = fields.filter((field) => of[field].kind === "held" || of[field].kind === "heldJson");
  const cleaned = new WeakSet<R>();
  return {
    clean(record) {
      if (written.length === 0 || cleaned.has(record)) return record;
      const shown = { ...record };
      for (const field of written) shown[field] = withoutSecrets(of[field].kind, record[field]);
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
  if (typeof value === "string" || typeof value === "number") return value;
  throw new TypeError(`a column cannot hold a value of type ${typeof value}`);
}

function snake(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
