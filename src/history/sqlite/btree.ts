import type { Pages } from "./pages.ts";
import { type Payload, Row, varint } from "./record.ts";

export interface TableRow {
  readonly rowid: number;
  readonly row: Row;
}

const [INTERIOR_INDEX, INTERIOR_TABLE, LEAF_INDEX, LEAF_TABLE] = [0x02, 0x05, 0x0a, 0x0d];

/** Every row of a table, by rowid. */
export function* tableRows(pages: Pages, root: number): Generator<TableRow> {
  yield* tableBelow(new Walk(pages), root);
}

/** The row with this id. */
export function tableRow(pages: Pages, root: number, rowid: number): Row | null {
  const walk = new Walk(pages);
  for (let number = root; ;) {
    const node = walk.node(number);
    if (node.type === LEAF_TABLE) {
      const found = node.cells.map((at) => leafCell(pages, node, at)).find((cell) => cell.rowid === rowid);
      return found === undefined ? null : new Row(pages, found.payload);
    }
    expect(node, INTERIOR_TABLE);
    const at = node.cells.find((cell) => varint(node.page, cell + 4)[0] >= rowid);
    number = at === undefined ? node.right : node.page.readUInt32BE(at);
  }
}

/** The ids of the rows whose first column in an index is this text, in the index's order. */
export function indexed(pages: Pages, root: number, key: string): number[] {
  const found: number[] = [];
  indexBelow(new Walk(pages), root, { key: Buffer.from(key), found });
  return found;
}

interface Node {
  readonly page: Buffer;
  readonly type: number;
  /** Where each cell begins in the page. */
  readonly cells: readonly number[];
  readonly right: number;
}

/** No page is met twice on one walk: what leads back to itself is no tree. */
class Walk {
  readonly pages: Pages;
  readonly #seen = new Set<number>();

  constructor(pages: Pages) {
    this.pages = pages;
  }

  node(number: number): Node {
    if (this.#seen.has(number)) throw new Error(`its page ${number} leads back to itself`);
    this.#seen.add(number);
    const page = this.pages.page(number);
    const start = number === 1 ? 100 : 0;
    const type = page[start] as number;
    const isInterior = type === INTERIOR_INDEX || type === INTERIOR_TABLE;
    const count = page.readUInt16BE(start + 3);
    const first = start + (isInterior ? 12 : 8);
    if (first + count * 2 > page.length) throw new Error(`its page ${number} is broken`);
    const cells = Array.from({ length: count }, (_, index) => page.readUInt16BE(first + index * 2));
    if (cells.some((at) => at + 4 > page.length)) throw new Error(`its page ${number} is broken`);
    return { page, type, cells, right: isInterior ? page.readUInt32BE(start + 8) : 0 };
  }
}

function* tableBelow(walk: Walk, number: number): Generator<TableRow> {
  const node = walk.node(number);
  if (node.type === LEAF_TABLE) {
    for (const at of node.cells) {
      const { rowid, payload } = leafCell(walk.pages, node, at);
      yield { rowid, row: new Row(walk.pages, payload) };
    }
    return;
  }
  expect(node, INTERIOR_TABLE);
  for (const at of node.cells) yield* tableBelow(walk, node.page.readUInt32BE(at));
  yield* tableBelow(walk, node.right);
}

interface Sought {
  readonly key: Buffer;
  readonly found: number[];
}

/** True when everything that could follow is greater. */
function indexBelow(walk: Walk, number: number, sought: Sought): boolean {
  const node = walk.node(number);
  const isLeaf = node.type === LEAF_INDEX;
  if (!isLeaf) expect(node, INTERIOR_INDEX);
  for (const at of node.cells) {
    const [bytes, start] = varint(node.page, isLeaf ? at : at + 4);
    const row = new Row(walk.pages, payloadAt(walk.pages, node.page, { start, bytes, isIndex: true }));
    const order = Buffer.compare(keyOf(row), sought.key);
    if (order < 0) continue;
    if (!isLeaf && indexBelow(walk, node.page.readUInt32BE(at), sought)) return true;
    if (order > 0) return true;
    sought.found.push(row.value(row.length - 1) as number);
  }
  return isLeaf ? false : indexBelow(walk, node.right, sought);
}

/** Numbers and nothing come before all texts. */
function keyOf(row: Row): Buffer {
  return typeof row.value(0) === "string" ? row.raw(0) : Buffer.alloc(0);
}

function leafCell(pages: Pages, { page }: Node, at: number): { rowid: number; payload: Payload } {
  const [bytes, afterBytes] = varint(page, at);
  const [rowid, start] = varint(page, afterBytes);
  return { rowid, payload: payloadAt(pages, page, { start, bytes, isIndex: false }) };
}

/** How much of a payload stands in the page itself is a matter of the format. */
function payloadAt(
  { usableBytes }: Pages,
  page: Buffer,
  { start, bytes, isIndex }: { start: number; bytes: number; isIndex: boolean },
): Payload {
  const max = isIndex ? Math.floor(((usableBytes - 12) * 64) / 255) - 23 : usableBytes - 35;
  const min = Math.floor(((usableBytes - 12) * 32) / 255) - 23;
  const fitting = min + ((bytes - min) % (usableBytes - 4));
  const localBytes = bytes <= max ? bytes : fitting <= max ? fitting : min;
  const end = start + localBytes;
  const isWhole = localBytes === bytes;
  if (bytes < 0 || end + (isWhole ? 0 : 4) > page.length) throw new Error("a row is cut off");
  return { bytes, local: page.subarray(start, end), overflow: isWhole ? 0 : page.readUInt32BE(end) };
}

function expect({ type }: Node, expected: number): void {
  if (type !== expected) throw new Error("a page is of another kind than expected");
}
