import assert from "node:assert/strict";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { zstdCompressSync } from "node:zlib";
import { readFully } from "../../../lines/byte-file.ts";
import { discoverAll, readAll } from "../../../reader.spec.ts";
import { codex } from "../index.ts";
import { session } from "../testing/layouts.ts";
import { idAt, writeRollout } from "../testing/made.ts";
import { openZstd } from "./zstd-file.ts";

describe("a compressed file", () => {
  let folder: string;
  before(async () => {
    folder = await fs.mkdtemp(join(tmpdir(), "kinfold-zstd-"));
  });
  after(() => fs.rm(folder, { recursive: true, force: true }));
  const write = async (bytes: Buffer): Promise<string> => {
    const path = join(await fs.mkdtemp(join(folder, "file-")), "some.zst");
    await fs.writeFile(path, bytes);
    return path;
  };
  // Not repetitive, so that its chunks differ from each other.
  const lines = Buffer.from(
    Array.from({ length: 60_000 }, (_, line) => `{"line":${line},"more":"${(line * 7919) % 104729}"}\n`).join(
      "",
    ),
  );

  it("is read at any offset, forwards and backwards, beyond the data that is kept", async () => {
    const plain = Buffer.concat(Array.from({ length: 6 }, () => lines));
    const file = await openZstd(await write(zstdCompressSync(plain)));
    assert.ok(plain.length > 10 * 1024 * 1024);
    assert.equal(file.sizeBytes, plain.length);
    for (const offset of [
      plain.length - 50,
      5,
      9_000_000,
      8_900_000,
      0,
      plain.length - 10,
      plain.length,
      1e9,
    ]) {
      const buffer = Buffer.alloc(70_000);
      const count = await readFully(file, buffer, offset);
      const wanted = plain.subarray(Math.min(offset, plain.length), offset + 70_000);
      assert.ok(buffer.subarray(0, count).equals(wanted), `at ${offset}`);
    }
    await file.close();
  });

  it("of several frames is one file", async () => {
    const [first, second] = [Buffer.from("one\n"), Buffer.from("two\n")];
    const file = await openZstd(
      await write(Buffer.concat([zstdCompressSync(first), zstdCompressSync(second)])),
    );
    const buffer = Buffer.alloc(20);
    assert.equal(buffer.subarray(0, await readFully(file, buffer, 0)).toString(), "one\ntwo\n");
    await file.close();
  });

  it("that is truncated or damaged gives the bytes before the damage and one bad line", async () => {
    const id = idAt(0, "torn");
    const rows = Array.from({ length: 400 }, () => session(id, 0)).flat();
    for (const damage of [
      (bytes: Buffer) => bytes.subarray(0, Math.floor(bytes.length * 0.6)),
      (bytes: Buffer) =>
        Buffer.concat([bytes.subarray(0, Math.floor(bytes.length * 0.6)), Buffer.alloc(99, 255)]),
    ]) {
      const root = await fs.mkdtemp(join(folder, "root-"));
      // Random words keep the file from compressing to a few bytes.
      const noisy = rows.map((row, index) => ({ ...row, noise: Math.sin(index).toString(36) }));
      const path = await writeRollout(root, id, noisy, { isPacked: true });
      await fs.writeFile(path, damage(await fs.readFile(path)));
      const [found] = await discoverAll(codex, root);
      assert.ok(found);
      const { entries, badCount, state } = await readAll(codex, found);
      assert.ok(entries.length > 0);
      assert.ok(badCount >= 1 && badCount <= 2, `${badCount} bad lines`);
      assert.equal(state.facts.cwd, "/w/app");
      assert.ok((await codex.tail(found, { entriesMax: 5 })).entries.length >= 5);
    }
  });

  it("that is not a zstd file is reported", async () => {
    const root = await fs.mkdtemp(join(folder, "root-"));
    const id = idAt(0, "none");
    const path = await writeRollout(root, id, session(id, 0), { isPacked: true });
    await fs.writeFile(path, "not compressed at all");
    const [found] = await discoverAll(codex, root);
    assert.ok(found);
    assert.match((await codex.glance(found)).problem ?? "", /not a zstd file/u);
  });
});
