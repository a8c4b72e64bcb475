import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, before, describe, it } from "node:test";
import { EntryAuthor, EntryBody, EntryKind } from "../contract/index.ts";
import { type FamilyMember, familyOf } from "./state/family.ts";
import { hostile, mutated } from "./testing/mutation.ts";
import type { FoundSession, HistoryEntry, HistoryReader, Problem, ReadBatch, ReadState } from "./port.ts";
import { systemProbe } from "../system/process-probe.ts";
import { randomFrom } from "../testing/seeds.ts";

export interface ReaderUnderTest {
  readonly reader: HistoryReader;
  /** Writes sample files into a new, empty root. */
  readonly lay: (root: string) => Promise<void>;
  /** Whether the session's file only gets lines appended. Tests that truncate files skip other sessions. */
  readonly isLines: (found: FoundSession) => boolean;
}

export interface Reading {
  /** One entry for each ref. It has the last text and the position of the first entry with that ref. */
  readonly entries: HistoryEntry[];
  readonly leftBehind: ReadBatch["leftBehind"];
  readonly badCount: number;
  readonly state: ReadState;
  readonly wasReset: boolean;
}

export async function readAll(
  reader: HistoryReader,
  found: FoundSession,
  options: { state?: ReadState | null; chunkBytes?: number; before?: Reading; lineBytesMax?: number } = {},
): Promise<Reading> {
  const { state = options.before?.state ?? null, chunkBytes, before: earlier, lineBytesMax } = options;
  const entries = new Map((earlier?.entries ?? []).map((entry) => [nameOf(entry), entry]));
  const leftBehind = [...(earlier?.leftBehind ?? [])];
  let badCount = earlier?.badCount ?? 0;
  let last: ReadBatch | null = null;
  let wasReset = false;
  for await (const batch of reader.read(found, state, { chunkBytes, lineBytesMax })) {
    if (batch.reset) {
      assert.equal(last, null, "only the first batch begins anew");
      entries.clear();
      leftBehind.length = 0;
      [badCount, wasReset] = [0, true];
    }
    for (const { replaces, ...entry } of batch.entries) {
      const own = { ...entry, ref: replaces ?? entry.ref };
      entries.set(nameOf(own), own);
    }
    leftBehind.push(...batch.leftBehind);
    badCount += batch.badCount;
    last = batch;
  }
  assert.ok(last, "at least one batch comes");
  const after = last.state();
  const plain: ReadState = JSON.parse(JSON.stringify(after));
  assert.deepEqual(plain, after, "a state is plain JSON");
  return { entries: [...entries.values()], leftBehind, badCount, state: plain, wasReset };
}

function nameOf({ inlineId, ref }: HistoryEntry): string {
  return `${inlineId ?? ""} ${ref}`;
}

export async function discoverAll(reader: HistoryReader, root: string): Promise<FoundSession[]> {
  const problems: Problem[] = [];
  const found = await Array.fromAsync(reader.discover(root, (problem) => problems.push(problem)));
  assert.deepEqual(problems, []);
  return found.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

/** The tests that every reader has to pass. */
export function provesReader(name: string, { reader, lay, isLines }: ReaderUnderTest): void {
  describe(`${name} fulfils the port's contract`, () => {
    let folder: string;
    let root: string;
    const fresh = async (): Promise<string> => {
      const made = await fs.mkdtemp(join(folder, "root-"));
      await lay(made);
      return made;
    };
    before(async () => {
      folder = await fs.mkdtemp(join(tmpdir(), "kinfold-history-"));
      root = await fresh();
    });
    after(() => fs.rm(folder, { recursive: true, force: true }));

    it("a root that does not exist has no sessions, and keys are unique", async () => {
      assert.deepEqual(await discoverAll(reader, join(folder, "nowhere")), []);
      const found = await discoverAll(reader, root);
      assert.ok(found.length > 0);
      assert.equal(new Set(found.map(({ key }) => key)).size, found.length);
      assert.deepEqual(JSON.parse(JSON.stringify(found)), found);
    });

    it("every entry fits the contract, and its ref is unique", async () => {
      for (const found of await discoverAll(reader, root)) {
        const { entries, badCount } = await readAll(reader, found);
        assert.equal(badCount, 0, found.path);
        for (const entry of entries) checkEntry(entry);
      }
    });

    it("reading in pieces of any size gives the same as reading at once", async () => {
      for (const found of await discoverAll(reader, root)) {
        const whole = await readAll(reader, found);
        for (const chunkBytes of [61, 997, 64 * 1024]) {
          assert.deepEqual(
            await readAll(reader, found, { chunkBytes }),
            whole,
            `${found.path} by ${chunkBytes}`,
          );
        }
        const again = await readAll(reader, found, { before: whole });
        assert.deepEqual(again, whole, "nothing new gives nothing new");
      }
    });

    it("a file cut at any byte and then completed gives the same as the whole file", async () => {
      for (const found of (await discoverAll(reader, root)).filter(isLines)) {
        const bytes = await fs.readFile(found.path);
        const whole = await readAll(reader, found);
        const place = await fresh();
        const torn: FoundSession = { ...found, path: join(place, relative(root, found.path)), root: place };
        for (const cuts of cutsOf(bytes, relative(root, found.path))) {
          const reading = await readGrowing(reader, { torn, bytes, cuts });
          assert.deepEqual(withoutPlace(reading), withoutPlace(whole), `${torn.path} cut at ${cuts.join()}`);
        }
      }
    });

    it("no content of a line makes the reader throw, and the rest is read", async () => {
      const next = randomFrom(name.length);
      const place = await fresh();
      const others = await readFamily(reader, place);
      for (const found of (await discoverAll(reader, place)).filter(isLines)) {
        const bytes = await fs.readFile(found.path);
        const kept = others.filter(({ key }) => key !== found.key && !key.startsWith(`${found.key}#`));
        for (let round = 0; round < 20; round += 1) {
          await fs.writeFile(found.path, round === 0 ? hostile(bytes) : mutated(bytes, next));
          judgeAll([...kept, ...(await readMember(reader, found))]);
        }
        await fs.writeFile(found.path, bytes);
      }
    });

    it("lines between bad lines are read, and each bad line is counted", async (t) => {
      const all = (await discoverAll(reader, await fresh())).filter(isLines);
      if (all.length === 0) return t.skip("this format has no lines");
      for (const found of all) {
        const whole = await readAll(reader, found);
        const lines = (await fs.readFile(found.path, "utf8")).trimEnd().split("\n");
        await fs.writeFile(found.path, lines.map((line) => `${line}\n{"broken": \n`).join(""));
        const reading = await readAll(reader, found);
        assert.equal(reading.badCount, lines.length, found.path);
        assert.deepEqual(said(reading), said(whole), found.path);
      }
    });

    it("a line of 200 MB is counted and skipped, not kept in memory", async (t) => {
      const found = (await discoverAll(reader, await fresh())).find(isLines);
      if (found === undefined) return t.skip("this format has no lines");
      const whole = await readAll(reader, found);
      await addLongLine(found.path, 200 * 1024 * 1024);
      const rssBefore = process.memoryUsage().rss;
      const reading = await readAll(reader, found);
      const grownBytes = process.memoryUsage().rss - rssBefore;
      assert.ok(grownBytes < 150 * 1024 * 1024, `${grownBytes} bytes more`);
      assert.equal(reading.badCount, 1);
      assert.deepEqual(refs(reading), refs(whole));
      const page = await reader.tail(found, { entriesMax: 1000 });
      assert.deepEqual(new Set(page.entries.map(nameOf)), new Set(whole.entries.map(nameOf)));
    });

    it("a file that is replaced, shortened or rewritten while it is read is read again; a removed one is an error", async (t) => {
      const all = (await discoverAll(reader, await fresh())).filter(isLines);
      const [found, other] = [all[0], all.at(-1)];
      if (found === undefined || other === undefined || found === other)
        return t.skip("it needs two files of lines");
      const old = await fs.readFile(found.path);
      const changes: (() => Promise<void>)[] = [
        () =>
          fs.copyFile(other.path, `${found.path}.new`).then(() => fs.rename(`${found.path}.new`, found.path)),
        () => fs.truncate(found.path, 10),
        () => fs.writeFile(found.path, Buffer.concat([Buffer.from("{}\n"), old, old])),
        () => fs.rm(found.path),
      ];
      for (const change of changes) {
        await fs.writeFile(found.path, old);
        const reading = await readAll(reader, found);
        let isChanged = false;
        // Reading continues after the change. Its result does not matter, but it must end and must not throw.
        for await (const batch of reader.read(found, null, { chunkBytes: 512 })) {
          if (batch.bytesRead > 0 && !isChanged) {
            await change();
            isChanged = true;
          }
        }
        assert.ok(isChanged);
        // The change may have removed the file.
        if ((await fs.stat(found.path).catch(() => null)) === null) {
          await assert.rejects(readAll(reader, found, { state: reading.state }), /ENOENT/);
          assert.match((await reader.glance(found)).problem ?? "", /ENOENT/);
          continue;
        }
        const anew = await readAll(reader, found, { state: reading.state });
        assert.ok(anew.wasReset, "what was known is void");
        assert.deepEqual({ ...anew, wasReset: false }, await readAll(reader, found));
      }
    });

    it("a glance at a small file gives the same facts as reading it", async () => {
      let wholeCount = 0;
      for (const found of await discoverAll(reader, root)) {
        const { facts, whole, problem } = await reader.glance(found);
        assert.equal(problem, null);
        if (!whole) continue;
        wholeCount += 1;
        assert.deepEqual(facts, (await readAll(reader, found)).state.facts, found.path);
      }
      assert.ok(wholeCount > 0, "no file was small enough to be seen whole");
    });

    it("the pages from the tail back to the beginning contain every entry once", async () => {
      for (const found of await discoverAll(reader, root)) {
        const { entries } = await readAll(reader, found);
        const seen = new Set<string>();
        let beforeOffset: number | undefined;
        for (let pages = 0; pages <= entries.length + 1; pages += 1) {
          const page = await reader.tail(found, { entriesMax: 3, beforeOffset });
          for (const entry of page.entries) {
            assert.ok(!seen.has(nameOf(entry)), `${found.path}: ${nameOf(entry)} is on two pages`);
            seen.add(nameOf(entry));
          }
          if (page.beforeOffset === null) break;
          beforeOffset = page.beforeOffset;
        }
        assert.deepEqual(seen, new Set(entries.map(nameOf)), found.path);
      }
    });

    it("nothing below a root is written, created or touched", async () => {
      const place = await fresh();
      await lock(place);
      const earlier = await pictureOf(place);
      await readFamily(reader, place);
      for (const found of await discoverAll(reader, place)) {
        await reader.glance(found);
        await reader.tail(found, { entriesMax: 5 });
      }
      assert.deepEqual(await pictureOf(place), earlier);
      await unlock(place);
    });

    it("a file that cannot be read is reported, and the others are read", async (t) => {
      const place = await fresh();
      const all = await discoverAll(reader, place);
      const found = all.find(isLines);
      if (found === undefined || all.length < 2) return t.skip("it needs two files of lines");
      await fs.rm(found.path);
      await fs.mkdir(found.path);
      assert.match((await reader.glance(found)).problem ?? "", /EISDIR|not a file/u);
      const problems: Problem[] = [];
      const left = await Array.fromAsync(reader.discover(place, (problem) => problems.push(problem)));
      assert.ok(left.length >= 1 && left.every(({ path }) => path !== found.path));
      assert.deepEqual(
        problems.map(({ path }) => path),
        [found.path],
      );
    });
  });
}

/** Reads everything below a root and determines parents and states, as an import does. */
export async function readFamily(reader: HistoryReader, root: string): Promise<FamilyMember[]> {
  await reader.live(root, systemProbe);
  const found = await Array.fromAsync(reader.discover(root, () => undefined));
  const members = (await Promise.all(found.map((one) => readMember(reader, one)))).flat();
  judgeAll(members);
  return members;
}

export async function readMember(reader: HistoryReader, found: FoundSession): Promise<FamilyMember[]> {
  const { state, entries } = await readAll(reader, found);
  for (const entry of entries) checkEntry(entry);
  await reader.tail(found, { entriesMax: 10 });
  const inline = Object.entries(state.inline).map(([id, facts]) => ({ key: `${found.key}#${id}`, facts }));
  return [{ key: found.key, facts: state.facts }, ...inline];
}

function judgeAll(members: readonly FamilyMember[]): void {
  const root = members.find(({ facts }) => !facts.isSubagent) ?? null;
  const others = members.filter((member) => member !== root);
  const family = familyOf({ root, members: others });
  const keys = new Set(family.agents.map(({ key }) => key));
  assert.ok(
    others.every(({ key }) => keys.has(key)),
    "nobody is lost from a family",
  );
}

function checkEntry(entry: HistoryEntry): void {
  EntryAuthor.parse(entry.author);
  EntryKind.parse(entry.kind);
  EntryBody.parse(entry.body);
  assert.ok(JSON.stringify(entry.body).length > 0 && Number.isFinite(entry.at) && entry.ref !== "");
}

/**
 * Returns lists of offsets at which a file is cut. Each list has one cut, except the last, which has many.
 */
function cutsOf(bytes: Buffer, seed: string): number[][] {
  const next = randomFrom(seed.length * 31 + bytes.length);
  const anywhere = Array.from({ length: 12 }, () => [Math.floor(next() * bytes.length)]);
  const newlines = [...bytes.entries()].filter(([, byte]) => byte === 10).map(([index]) => index);
  const around = newlines
    .filter(() => next() < 8 / newlines.length)
    .flatMap((at) => [[at], [at + 1], [at + 2]]);
  const many = Array.from({ length: 30 }, () => Math.floor(next() * bytes.length)).toSorted((a, b) => a - b);
  return [[0], ...anywhere, ...around, many];
}

interface Growing {
  readonly torn: FoundSession;
  readonly bytes: Buffer;
  readonly cuts: readonly number[];
}

/** Writes the file piece by piece, and continues reading after each piece. */
async function readGrowing(reader: HistoryReader, { torn, bytes, cuts }: Growing): Promise<Reading> {
  await fs.writeFile(torn.path, "");
  let reading: Reading | undefined;
  let written = 0;
  for (const end of [...cuts, bytes.length]) {
    await fs.appendFile(torn.path, bytes.subarray(written, end));
    written = end;
    reading = await readAll(reader, torn, reading === undefined ? {} : { before: reading });
  }
  return reading as Reading;
}

function withoutPlace({ entries, leftBehind, badCount, state }: Reading): unknown {
  const { facts, inline, notes } = state;
  return { entries, leftBehind, badCount, facts, inline, notes };
}

/** Leaves refs out, because they may be positions in the file. */
function said({ entries }: Reading): string[] {
  return entries.map(({ author, kind, body }) => `${author} ${kind} ${body.text}`);
}

function refs({ entries }: Reading): string[] {
  return entries.map(nameOf);
}

/** The line's text is a hole in a sparse file, so that the disk is not filled. */
async function addLongLine(path: string, bytes: number): Promise<void> {
  const content = await fs.readFile(path);
  const file = await fs.open(path, "r+");
  try {
    const head = Buffer.from('{"type":"user","message":{"role":"user","content":"');
    await file.write(head, 0, head.length, content.length);
    const end = Buffer.from(`"}}\n`);
    await file.write(end, 0, end.length, content.length + bytes);
    await file.write(content, 0, content.length, content.length + bytes + end.length);
  } finally {
    await file.close();
  }
}

async function pictureOf(root: string): Promise<Record<string, unknown>> {
  const paths = (await fs.readdir(root, { recursive: true })).toSorted();
  const rows = paths.map(async (path) => {
    const stat = await fs.lstat(join(root, path));
    const hash = stat.isFile()
      ? createHash("sha1")
          .update(await fs.readFile(join(root, path)))
          .digest("hex")
      : "";
    return [path, { hash, size: stat.size, mode: stat.mode, mtime: stat.mtimeMs, ctime: stat.ctimeMs }];
  });
  return Object.fromEntries(await Promise.all(rows));
}

async function lock(root: string): Promise<void> {
  for (const path of await fs.readdir(root, { recursive: true, withFileTypes: true })) {
    await fs.chmod(join(path.parentPath, path.name), path.isDirectory() ? 0o555 : 0o444);
  }
  await fs.chmod(root, 0o555);
}

async function unlock(root: string): Promise<void> {
  await fs.chmod(root, 0o755);
  for (const path of await fs.readdir(root, { recursive: true, withFileTypes: true })) {
    if (path.isDirectory()) await fs.chmod(join(path.parentPath, path.name), 0o755);
  }
}
