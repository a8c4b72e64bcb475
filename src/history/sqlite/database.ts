import { indexed, tableRow, tableRows } from "./btree.ts";
import { openPages, type Pages } from "./pages.ts";
import type { Row, Value } from "./record.ts";
import { columnsOf, firstIndexed, rowidColumn } from "./schema.ts";

export type { Value } from "./record.ts";

/**
 * A database of someone else, for looking only. It sees everything that is committed, also what stands in
 * the write-ahead log of a program that is at work, and leaves no trace: no lock, no file, no byte.
 */
export interface Database {
  /** Null when there is none, or when it is of a kind that cannot be read. */
  table(name: string): Table | null;
  /** Whether all that was read so far belongs together; if not, it has to be read again. */
  isStill(): boolean;
  close(): void;
}

export interface Table {
  readonly columns: ReadonlySet<string>;
  /** In the order of their rowids. */
  rows(): Generator<NamedRow>;
  /** Rows with this text in a column; fast where an index begins with that column. */
  where(column: string, text: string): Generator<NamedRow>;
  at(rowid: number): NamedRow | null;
}

/** A row with names. A column that the table does not have is null. */
export interface NamedRow {
  readonly rowid: number;
  get(column: string): Value;
  text(column: string): string | null;
  number(column: string): number | null;
  /** How long a value is, without reading it. */
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
  const tables = made.filter(
    ({ kind, root, sql }) => kind === "table" && root > 0 && !/\)\s*[^)]*without\s+rowid[^)]*$/iu.test(sql),
  );
  return new Map(tables.map((table) => [table.of, tableOf(pages, table, made)]));
}

function tableOf(pages: Pages, { of, root, sql }: Made, made: readonly Made[]): Table {
  const places = new Map(columnsOf(sql).map((name, index) => [name, index]));
  const alias = rowidColumn(sql);
  const indexes = new Map(
    made.flatMap((index): [string, number][] => {
      const first = index.kind === "index" && index.of === of ? firstIndexed(index.sql) : null;
      return first === null ? [] : [[first, index.root]];
    }),
  );
  const named = (rowid: number, row: Row): NamedRow => recordOf(rowid, row, { places, alias });
  const at = (rowid: number): NamedRow | null => {
    const row = tableRow(pages, root, rowid);
    return row === null ? null : named(rowid, row);
  };
  return {
    columns: new Set(places.keys()),
    at,
    *rows() {
      for (const { rowid, row } of tableRows(pages, root)) yield named(rowid, row);
    },
    *where(column, text) {
      const index = indexes.get(column);
      if (index === undefined) {
        for (const row of this.rows()) if (row.get(column) === text) yield row;
        return;
      }
      for (const rowid of indexed(pages, index, text)) {
        const row = at(rowid);
        if (row !== null) yield row;
      }
    },
  };
}

function recordOf(
  rowid: number,
  row: Row,
  { places, alias }: { places: ReadonlyMap<string, number>; alias: string | null },
): NamedRow {
  const get = (column: string): Value => {
    if (column === alias) return rowid;
    const place = places.get(column);
    return place === undefined ? null : row.value(place);
  };
  return {
    rowid,
    get,
    text(column) {
      const value = get(column);
      return typeof value === "string" && value !== "" ? value : null;
    },
    number(column) {
      const value = get(column);
      return typeof value === "number" && Number.isFinite(value) ? value : null;
    },
    bytes(column) {
      const place = places.get(column);
      return place === undefined ? 0 : row.bytesOf(place);
    },
  };
}
