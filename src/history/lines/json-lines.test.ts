import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { appendFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, it } from "node:test";
import { type LinePosition, readRows, readRowsBack, type Row } from "./json-lines.ts";

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "kinfold-lines-"));
  path = join(folder, "a.jsonl");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const CONTENT = Buffer.from(
  '\ufeff{"a":1}\n\n{"b":"ä€😀"}\r\nbroken\n\u0000\u0000{"c":3}\n{"long":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}\n[1]\n{"d":4}',
);
const options = { lineBytesMax: 60, chunkBytes: 16 };

interface Taken {
  rows: Pick<Row, "value" | "line" | "offset">[];
  bad: string[];
  resets: number;
  position: LinePosition | null;
}

async function take(from: LinePosition | null, taken?: Taken, chunkBytes = 16): Promise<Taken> {
  const all = taken ?? { rows: [], bad: [], resets: 0, position: null };
  for await (const chunk of readRows(path, from, { ...options, chunkBytes })) {
    all.rows.push(...chunk.rows);
    all.bad.push(...chunk.bad.map(({ line, reason }) => `${line} ${reason}`));
    all.resets += chunk.reset ? 1 : 0;
    all.position = JSON.parse(JSON.stringify(chunk.position));
  }
  return all;
}

it("lines are numbered, bad lines are listed, and lines that are too long are skipped", async () => {
  await writeFile(path, CONTENT);
  const { rows, bad } = await take(null);
  assert.deepEqual(
    rows.map(({ value, line }) => [line, value]),
    [
      [1, { a: 1 }],
      [3, { b: "ä€😀" }],
      [5, { c: 3 }],
      [8, { d: 4 }],
    ],
  );
  assert.deepEqual(bad, ["4 is not a JSON object", "6 longer than 60 B", "7 is not a JSON object"]);
});

it("a file cut at any byte and then completed gives the same rows, numbers, offsets and bad lines", async () => {
  await writeFile(path, CONTENT);
  const whole = await take(null);
  for (let cut = 0; cut <= CONTENT.length; cut += 1) {
    await writeFile(path, CONTENT.subarray(0, cut));
    const first = await take(null);
    await appendFile(path, CONTENT.subarray(cut));
    const both = await take(first.position, first, 7);
    assert.deepEqual({ ...both, position: null }, { ...whole, position: null }, `cut at ${cut}`);
    assert.deepEqual(
      { ...both.position, identity: "" },
      { ...whole.position, identity: "" },
      `cut at ${cut}`,
    );
  }
});

it("a changed file is noticed although its size and inode are the same", async () => {
  await writeFile(path, CONTENT);
  const first = await take(null);
  const other = Buffer.from(CONTENT);
  other.write("9", CONTENT.indexOf('"d":4') + 4);
  await writeFile(path, other);
  const second = await take(first.position);
  assert.deepEqual([second.resets, second.rows.at(-1)?.value], [1, { d: 9 }]);
});

it("reading backwards from any offset gives the same rows, last one first", async () => {
  await writeFile(path, CONTENT);
  const { rows } = await take(null);
  for (const chunkBytes of [1, 5, 64, 4096]) {
    const back = await Array.fromAsync(readRowsBack(path, null, { ...options, chunkBytes }));
    const good = back.filter((row) => !("bad" in row)).map(({ offset }) => offset);
    assert.deepEqual(
      good.toReversed(),
      rows.map(({ offset }) => offset),
      `by ${chunkBytes}`,
    );
    const third = rows[2] as Row;
    const before = await Array.fromAsync(readRowsBack(path, third.offset, { ...options, chunkBytes }));
    assert.deepEqual(
      before.filter((row) => !("bad" in row)).map(({ offset }) => offset),
      [rows[1]?.offset, rows[0]?.offset],
    );
  }
});

it("a path that is not a file is refused with a reason, even a pipe that nobody writes to", async (t) => {
  await assert.rejects(Array.fromAsync(readRows(folder, null, options)), /not a file|illegal operation/);
  await assert.rejects(Array.fromAsync(readRows(join(folder, "none"), null, options)), /ENOENT/);
  const pipe = join(folder, "pipe");
  if (spawnSync("mkfifo", [pipe]).status !== 0) return t.skip("this system has no named pipes");
  await assert.rejects(Array.fromAsync(readRows(pipe, null, options)), /not a file/);
});
