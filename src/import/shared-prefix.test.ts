import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { lay, Transcript } from "../history/readers/claude-code/testing/transcript.ts";
import { folder, type Importing, startImporting, until } from "./testing/home.ts";

const S = "7f0e8d3a-1111-4222-8333-944445555666";
const T = "6f0e8d3a-1111-4222-8333-944445555666";
const fileOf = (id: string): string => `-w-app/${id}.jsonl`;

const first = (): Transcript => new Transcript(S).user("Find the zebraword").says("Here is the zebraword");

/** A session resumed into a new file, as older versions of the agent did. */
function resumed(): Transcript {
  const second = new Transcript(T);
  second.rows.push(...first().rows.map((row) => ({ ...row, sessionId: T })));
  const more = { timestamp: "2026-08-01T11:00:00.000Z", parentUuid: first().lastId };
  return second.user("More", more).says("ok");
}

async function texts(home: Importing, agentId: string): Promise<string[]> {
  const { id } = await home.byAgentId(agentId);
  return (await home.entries(id)).map(({ body }) => body.text);
}

describe("a session that was resumed or forked into a new file", () => {
  it("has only what is its own, after a word on where the rest stands", async (t) => {
    const home = await startImporting(t);
    await lay(home.claude, { [fileOf(T)]: resumed(), [fileOf(S)]: first() });
    await home.import();
    assert.deepEqual(await texts(home, S), ["Find the zebraword", "Here is the zebraword"]);
    const [notice, ...own] = await texts(home, T);
    assert.deepEqual(own, ["More", "ok"]);
    const { shortId } = await home.byAgentId(S);
    assert.equal(notice, `The entries before this are in session ${shortId}, which this session continues.`);
    assert.equal((await home.byAgentId(T)).messageCount, 4);
  });

  it("is known to go on from one that was imported before a restart", async (t) => {
    const agents = folder(t, "kinfold-agents-");
    const own = folder(t, "kinfold-import-");
    const before = await startImporting(t, { agents, home: own });
    await lay(before.claude, { [fileOf(S)]: first() });
    await before.import();
    await before.stop();
    await lay(before.claude, { [fileOf(T)]: resumed() });
    const home = await startImporting(t, { agents, home: own });
    await until(async () => (await home.sessions()).length === 2 && (await texts(home, T)).length >= 3);
    assert.deepEqual((await texts(home, T)).slice(1), ["More", "ok"]);
  });
});
