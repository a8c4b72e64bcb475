import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import * as fs from "node:fs/promises";
import path from "node:path";
import { describe, it, type TestContext } from "node:test";
import { lay, Transcript } from "../history/readers/claude-code/testing/transcript.ts";
import { systemProbe } from "../system/process-probe.ts";
import { following, startImporting, until } from "./testing/home.ts";

const idOf = (n: number): string => `${n}f0e8d3a-1111-4222-8333-944445555666`;
const fileOf = (id: string): string => `-w-app/${id}.jsonl`;
const working = (id: string): Transcript => new Transcript(id).user("long work");

async function register(t: TestContext, claude: string, sessionId: string): Promise<void> {
  const living = spawn("sleep", ["600"]);
  t.after(() => living.kill("SIGKILL"));
  const pid = living.pid as number;
  const procStart = systemProbe.startOf(pid);
  const entry = { pid, sessionId, cwd: "/w/app", startedAt: 0, procStart, version: "2.1.223" };
  await fs.mkdir(path.join(claude, "sessions"), { recursive: true });
  const file = path.join(claude, "sessions", `${pid}.json`);
  await fs.writeFile(file, JSON.stringify({ ...entry, status: "busy" }));
}

describe("who works on a session", () => {
  it("is never concluded from a list that was read before its file was written", async (t) => {
    const home = await startImporting(t);
    await register(t, home.claude, idOf(1));
    await lay(home.claude, { [fileOf(idOf(1))]: working(idOf(1)) });
    await home.import();
    const { events, ready } = following(t, home);
    await ready;
    for (const id of [2, 3, 4, 5].map(idOf)) {
      await register(t, home.claude, id);
      await lay(home.claude, { [fileOf(id)]: working(id) });
      const { id: own } = await until(async () =>
        (await home.sessions()).find(({ agentSessionId }) => agentSessionId === id),
      );
      await until(async () => (await home.entries(own)).length === 1);
      const created = await until(async () =>
        events.find(({ type, sessionId }) => type === "session.created" && sessionId === own),
      );
      assert.equal(created.data["state"], "running");
      const { evidence } = await home.byAgentId(id);
      assert.deepEqual([evidence.state, evidence.confidence], ["running", "certain"]);
    }
  });

  it("is asked again for a while where nobody was listed, and is not certain before", async (t) => {
    const home = await startImporting(t);
    await lay(home.claude, { [fileOf(idOf(1))]: working(idOf(1)) });
    await home.import();
    const before = await home.byAgentId(idOf(1));
    assert.deepEqual([before.evidence.state, before.evidence.confidence], ["interrupted", "likely"]);
    await register(t, home.claude, idOf(1));
    await until(async () => (await home.byAgentId(idOf(1))).evidence.state === "running");
  });

  it("is certain by absence from the list where the file was written long ago", async (t) => {
    const home = await startImporting(t);
    await lay(home.claude, { [fileOf(idOf(1))]: working(idOf(1)) });
    const then = new Date("2026-08-01T10:00:10Z");
    await fs.utimes(path.join(home.claude, "projects", fileOf(idOf(1))), then, then);
    await home.import();
    const { evidence } = await home.byAgentId(idOf(1));
    assert.deepEqual([evidence.state, evidence.confidence], ["interrupted", "certain"]);
  });

  it("is somebody where the file grows before our eyes, though the agent lists no process", async (t) => {
    const home = await startImporting(t);
    await lay(home.claude, { [fileOf(idOf(1))]: working(idOf(1)) });
    await home.import();
    const more = working(idOf(1)).says("I think", null).rows.slice(1);
    const file = path.join(home.claude, "projects", fileOf(idOf(1)));
    await fs.appendFile(file, more.map((row) => `${JSON.stringify(row)}\n`).join(""));
    const { evidence } = await until(async () => {
      const found = await home.byAgentId(idOf(1));
      return found.evidence.state !== "interrupted" && found;
    });
    assert.deepEqual([evidence.state, evidence.confidence], ["running", "likely"]);
    assert.match(evidence.reason, /its files grow/);
  });
});
