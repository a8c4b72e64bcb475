import assert from "node:assert/strict";
import * as fs from "node:fs/promises";
import path from "node:path";
import { describe, it } from "node:test";
import { lay, Transcript } from "../history/readers/claude-code/testing/transcript.ts";
import {
  answer,
  event,
  idAt,
  meta,
  numbered,
  prompt,
  type Row,
  turn,
  userItem,
  writeRollout,
} from "../history/readers/codex/testing/made.ts";
import { type Importing, startImporting, until } from "./testing/home.ts";

const T = idAt(0, "one");
const WORDS = ["Some", "words"];

async function texts(home: Importing, agentId: string): Promise<string[]> {
  const { id } = await home.byAgentId(agentId);
  return (await home.entries(id)).map(({ author, body }) =>
    author === "daemon" ? `(${body.text})` : body.text,
  );
}

/** Returns a prompt as it is written in a file with numbered records. */
function asked(second: number, text: string): Row[] {
  const item = { type: "UserMessage", id: `u${second}`, content: [{ type: "text", text }] };
  return [userItem(second, text), event(second, "item_completed", { thread_id: T, item })];
}

describe("a file that is not what was read before", () => {
  it("gives all that is new in it, after a word on what is no longer there", async (t) => {
    const home = await startImporting(t);
    const root = path.join(home.agents, ".codex");
    await writeRollout(root, T, [meta(0, T), ...turn(1, [...prompt(1, "AAAA"), answer(2, "BBBB")])]);
    await home.import();
    assert.deepEqual(await texts(home, T), ["AAAA", "BBBB"]);
    const other = [
      meta(0, T),
      ...turn(1, [...prompt(1, "CCCC"), answer(2, "DDDD")]),
      ...turn(20, [...prompt(20, "EEEE"), answer(21, "FFFF")]),
    ];
    await writeRollout(path.join(home.agents, "new"), T, other);
    const folder = "sessions/2026/08/01";
    const [name] = await fs.readdir(path.join(root, folder));
    const file = path.join(folder, name ?? "");
    await fs.rename(path.join(home.agents, "new", file), path.join(root, file));
    await home.import();
    const notice = "(2 entries before this are no longer in the agent's file, which was replaced.)";
    assert.deepEqual(await texts(home, T), ["AAAA", "BBBB", notice, "CCCC", "DDDD", "EEEE", "FFFF"]);
  });

  it("gives the new answer of a session that was taken back, though its number was another's", async (t) => {
    const home = await startImporting(t);
    const root = path.join(home.agents, ".codex");
    const rows = numbered([
      meta(0, T, { history_mode: "paginated" }),
      ...turn(1, [...asked(1, "One"), answer(2, "One: done")]),
      ...turn(20, [...asked(20, "Two"), answer(21, "Two: done")]),
    ]);
    await writeRollout(root, T, rows);
    await home.import();
    const shared = rows.slice(0, 7);
    const bytes = shared.reduce((sum, each) => sum + Buffer.byteLength(JSON.stringify(each)) + 1, 0);
    const base = { thread_id: T, end_ordinal_exclusive: 7, end_byte_offset: bytes };
    const again = turn(101, [...asked(101, "Another two"), answer(102, "Another two: done")]);
    const head = meta(100, T, { history_mode: "paginated", history_base: base });
    const taken = { rolloutId: idAt(100, "rev"), second: 100 };
    await writeRollout(root, T, [head, ...numbered(again, 7)], taken);
    await home.import();
    const told = await texts(home, T);
    assert.deepEqual(told.slice(0, 4), ["One", "One: done", "Two", "Two: done"]);
    assert.match(told[4] ?? "", /^\(2 entries before this are no longer/);
    assert.deepEqual(told.slice(5), ["Another two", "Another two: done"]);
  });

  it("says nothing while it only has what was there", async (t) => {
    const home = await startImporting(t);
    const id = "6f0e8d3a-1111-4222-8333-944445555666";
    const file = path.join(home.claude, "projects", `-w-app/${id}.jsonl`);
    const said = (): Transcript => WORDS.reduce((all, word) => all.user(word).says("ok"), new Transcript(id));
    await lay(home.claude, { [`-w-app/${id}.jsonl`]: said() });
    await home.import();
    const before = await texts(home, id);
    await fs.writeFile(file, "");
    await home.import();
    await fs.writeFile(file, said().user("More").text());
    await until(async () => (await texts(home, id)).length > before.length);
    assert.deepEqual(await texts(home, id), [...before, "More"]);
  });
});
