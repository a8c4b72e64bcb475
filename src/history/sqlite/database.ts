import { asNumber, asText } from "../lines/value.ts";
import { indexed, tableRow, tableRows } from "./btree.ts";
import { openPages, type Pages } from "./pages.ts";
import type { Row, Value } from "./record.ts";
import { columnsOf, indexedColumns, isWithoutRowid, rowidColumn } from "./schema.ts";

export type { Value } from "./record.ts";

/**
 * Another program's database, for reading only. It shows everything committed, including what is only in the
 * write-ahead log of a running program. Reading it takes no lock and changes or creates no file.
 */
export interface Database {
  /** Returns null when the table does not exist or cannot be read. */
  table(name: string): Table | null;
  /** Whether everything read so far is consistent; if not, it must be read again. */
  isStill(): boolean;
  close(): void;
}

export interface Table {
  readonly columns: ReadonlySet<string>;
  /** Yields rows in rowid order; with `after`, only those with a greater rowid. */
  rows(after?: number): Generator<NamedRow>;
  /** Yields the rows with this text in a column; fast if an index begins with that column. */
  where(column: string, text: string): Generator<NamedRow>;
  at(rowid: number): NamedRow | null;
}

/** A row whose values are read by column name. A column that the table does not have reads as null. */
export interface NamedRow {
  readonly rowid: number;
  get(column: string): Value;
  text(column: string): string | null;
  number(column: string): number | null;
  /** Returns a value's length without reading it. */
  bytes(column: string): number;
}

export function openDatabase(path: string): Database {
  const pages = openPages(path);
  try {
    const tables = tablesOf(pages);
    return {
      table: (name) => tables.get(name) ?? null,
      isStill: () => pages.isStill(),
      close: () => pages.close(),
    };
  } catch (error) {
    pages.close();
    throw error;
  }
}

interface Made {
  readonly kind: Value;
  readonly of: string;
  readonly root: number;
  readonly sql: string;
}

function tablesOf(pages: Pages): Map<string, Table> {
  const made = Array.from(tableRows(pages, 1), ({ row }): Made => {
    const [kind, of, root, sql] = [row.value(0), row.value(2), row.value(3), row.value(4)];
    return { kind, of: String(of), root: Number(root), sql: typeof sql === "string" ? sql : "" };
  });
  const tables = made.filter(({ kind, root, sql }) => kind === "table" && root > 0 && !isWithoutRowid(sql));
  return new Map(tables.map((table) => [table.of, tableOf(pages, table, made)]));
}

function tableOf(pages: Pages, { of, root, sql }: Made, made: readonly Made[]): Table {
  const columns = columnsOf(sql);
  const alias = rowidColumn(sql);
  const indexes = new Map(
    made.flatMap((index): [string, Index][] => {
      const names = index.kind === "index" && index.of === of ? indexedColumns(index.sql) : [];
      return names[0] === undefined ? [] : [[names[0], { root: index.root, names }]];
    }),
  );
  const rowAt = (rowid: number): Row | null => tableRow(pages, root, rowid);
  const named = (rowid: number, row: Row): NamedRow => nameAll(rowid, () => row, { columns, alias });
  return {
    columns: new Set(columns),
    at(rowid) {
      const row = rowAt(rowid);
      return row === null ? null : named(rowid, row);
    },
    *rows(after) {
      for (const { rowid, row } of tableRows(pages, root, after)) yield named(rowid, row);
    },
    *where(column, text) {
      const index = indexes.get(column);
      if (index === undefined) {
        for (const row of this.rows()) if (row.get(column) === text) yield row;
        return;
      }
      for (const row of indexed(pages, index.root, text)) {
        const rowid = Number(row.value(row.length - 1));
        yield nameAll(rowid, () => rowAt(rowid), { columns, alias, index: { names: index.names, row } });
      }
    },
  };
}

interface Index {
  readonly root: number;
  readonly names: readonly string[];
}

interface Names {
  readonly columns: readonly string[];
  readonly alias: string | null;
  /** Set if the row was found through an index. Values in the index's row are not read from the table. */
  readonly index?: { readonly names: readonly string[]; readonly row: Row };
}

/** Looks up the table's row only when a requested column is not in the index. */
function nameAll(rowid: number, find: () => Row | null, { columns, alias, index }: Names): NamedRow {
  let found: Row | null | undefined;
  const rowOf = (): Row | null => (found === undefined ? (found = find()) : found);
  const get = (column: string): Value => {
    if (column === alias) return rowid;
    const place = index?.names.indexOf(column) ?? -1;
    if (index !== undefined && place >= 0) return index.row.value(place);
    const own = columns.indexOf(column);
    return own < 0 ? null : (rowOf()?.value(own) ?? null);
  };
  return {
    rowid,
    get,
    text: (column) => asText(get(column)),
    number: (column) => asNumber(get(column)),
    bytes(column) {
      const own = columns.indexOf(column);
      return own < 0 ? 0 : (rowOf()?.bytesOf(own) ?? 0);
    },
  };
}
