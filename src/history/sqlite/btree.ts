import type { Pages } from "./pages.ts";
import { type Payload, Row, varint } from "./record.ts";

export interface TableRow {
  readonly rowid: number;
  readonly row: Row;
}

const [INTERIOR_INDEX, INTERIOR_TABLE, LEAF_INDEX, LEAF_TABLE] = [0x02, 0x05, 0x0a, 0x0d];

/** Yields the rows with a rowid greater than `after`, in order. */
export function* tableRows(
  pages: Pages,
  root: number,
  after = Number.NEGATIVE_INFINITY,
): Generator<TableRow> {
  yield* tableBelow(visitor(pages), root, after);
}

export function tableRow(pages: Pages, root: number, rowid: number): Row | null {
  let number = root;
  for (let depth = 0; depth < DEPTH_MAX; depth += 1) {
    const node = new Node(pages, number);
    if (node.type === LEAF_TABLE) {
      const index = lowerBound(
        node.count,
        (at) => varint(node.page, varint(node.page, node.cell(at))[1])[0] >= rowid,
      );
      if (index === node.count) return null;
      const found = leafCell(node, index);
      return found.rowid === rowid ? new Row(pages, found.payload) : null;
    }
    node.expect(INTERIOR_TABLE);
    number = node.child(lowerBound(node.count, (at) => varint(node.page, node.cell(at) + 4)[0] >= rowid));
  }
  throw new Error("its B-tree is too deep");
}

/** Yields the index rows whose first column is `key`, in order. Their last column is the rowid. */
export function* indexed(pages: Pages, root: number, key: string): Generator<Row> {
  yield* indexBelow(visitor(pages), root, Buffer.from(key));
}

const DEPTH_MAX = 40;

class Node {
  readonly pages: Pages;
  readonly page: Buffer;
  readonly type: number;
  readonly count: number;
  readonly #start: number;
  readonly #first: number;

  constructor(pages: Pages, number: number) {
    this.pages = pages;
    this.page = pages.page(number);
    this.#start = number === 1 ? 100 : 0;
    this.type = this.page[this.#start] as number;
    this.count = this.page.readUInt16BE(this.#start + 3);
    this.#first = this.#start + (this.isInterior ? 12 : 8);
    if (this.#first + this.count * 2 > this.page.length) throw new Error(`its page ${number} is broken`);
  }

  get isInterior(): boolean {
    return this.type === INTERIOR_INDEX || this.type === INTERIOR_TABLE;
  }

  cell(index: number): number {
    const at = this.page.readUInt16BE(this.#first + index * 2);
    if (at + 4 > this.page.length) throw new Error("a page is broken");
    return at;
  }

  /** Returns the number of the child page at this index; after the last cell, the rightmost child. */
  child(index: number): number {
    return this.page.readUInt32BE(index < this.count ? this.cell(index) : this.#start + 8);
  }

  expect(type: number): void {
    if (this.type !== type) throw new Error("a page has an unexpected type");
  }
}

type Visit = (number: number) => Node;

/** Refuses to visit a page twice: pages of a damaged file may form a cycle. */
function visitor(pages: Pages): Visit {
  const seen = new Set<number>();
  return (number) => {
    if (seen.has(number)) throw new Error(`its page ${number} leads back to itself`);
    seen.add(number);
    return new Node(pages, number);
  };
}

function* tableBelow(visit: Visit, number: number, after: number): Generator<TableRow> {
  const node = visit(number);
  if (node.type === LEAF_TABLE) {
    for (let index = 0; index < node.count; index += 1) {
      const { rowid, payload } = leafCell(node, index);
      if (rowid > after) yield { rowid, row: new Row(node.pages, payload) };
    }
    return;
  }
  node.expect(INTERIOR_TABLE);
  const first = lowerBound(node.count, (at) => varint(node.page, node.cell(at) + 4)[0] > after);
  for (let index = first; index <= node.count; index += 1) yield* tableBelow(visit, node.child(index), after);
}

/** Yields the rows with this key. Returns true once a row with a greater key was met, to stop the search. */
function* indexBelow(visit: Visit, number: number, key: Buffer): Generator<Row, boolean> {
  const node = visit(number);
  if (node.type !== LEAF_INDEX) node.expect(INTERIOR_INDEX);
  const first = lowerBound(node.count, (at) => order(indexRow(node, at), key) >= 0);
  for (let index = first; index < node.count; index += 1) {
    if (node.isInterior && (yield* indexBelow(visit, node.child(index), key))) return true;
    const row = indexRow(node, index);
    if (order(row, key) > 0) return true;
    yield row;
  }
  return node.isInterior ? yield* indexBelow(visit, node.child(node.count), key) : false;
}

function indexRow(node: Node, index: number): Row {
  const at = node.cell(index);
  const [bytes, start] = varint(node.page, node.isInterior ? at + 4 : at);
  return new Row(node.pages, payloadAt(node, { start, bytes, isIndex: true }));
}

/** NULL and numbers sort before all texts. */
function order(row: Row, key: Buffer): number {
  return row.isText(0) ? Buffer.compare(row.raw(0), key) : -1;
}

/** Returns the first index for which `holds` is true. `holds` must be true for all later indexes too. */
function lowerBound(count: number, holds: (index: number) => boolean): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function leafCell(node: Node, index: number): { rowid: number; payload: Payload } {
  const [bytes, afterBytes] = varint(node.page, node.cell(index));
  const [rowid, start] = varint(node.page, afterBytes);
  return { rowid, payload: payloadAt(node, { start, bytes, isIndex: false }) };
}

/** Returns a row's payload: the part in this page, and the number of the page where the rest begins. */
function payloadAt(
  { page, pages: { usableBytes } }: Node,
  { start, bytes, isIndex }: { start: number; bytes: number; isIndex: boolean },
): Payload {
  const max = isIndex ? Math.floor(((usableBytes - 12) * 64) / 255) - 23 : usableBytes - 35;
  const min = Math.floor(((usableBytes - 12) * 32) / 255) - 23;
  const fitting = min + ((bytes - min) % (usableBytes - 4));
  const localBytes = bytes <= max ? bytes : fitting <= max ? fitting : min;
  const end = start + localBytes;
  const isWhole = localBytes === bytes;
  if (bytes < 0 || end + (isWhole ? 0 : 4) > page.length) throw new Error("a row is truncated");
  return { bytes, local: page.subarray(start, end), overflow: isWhole ? 0 : page.readUInt32BE(end) };
}
