import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import type { Problem } from "../../port.ts";
import { gemini } from "./index.ts";
import { readAll } from "../../reader.spec.ts";
import { Recording, families, readRoot } from "./testing/session.ts";

const recorded = fileURLToPath(new URL("testing/fixtures", import.meta.url));
const TALK = "31e64e9a-a358-44a5-8e94-e40f8bd20321";
const EMPTY = "dfff867b-81da-4318-abe0-78ff331932a0";

describe("what Gemini CLI left on disk", () => {
  it("a recorded session: its state, its usage, and who wrote what", async () => {
    const family = (await families(recorded)).get(TALK);
    assert.deepEqual([family?.judgement?.state, family?.judgement?.confidence], ["completed", "likely"]);
    const { entries, state, leftBehind } = (await readRoot(recorded)).get(TALK)!.reading;
    assert.deepEqual(
      entries.map(({ author, kind, body }) => `${author} ${kind} ${body.text.split("\n")[0]?.slice(0, 30)}`),
      [
        "agent notice <session_context>",
        "person text SAY-HELLO",
        "agent text Hello from the script.",
        "person text USE-TOOL",
        "agent text Calling.",
        "agent toolCall mcp_orc_spawn_session",
        "tool toolResult <untrusted_context>",
        "agent toolCall mcp_loc_echo",
        "tool toolResult <untrusted_context>",
        "agent text Spawned ses_1; echo said <untr",
        "person text USE-SHELL ESCALATED",
        "agent toolCall write a proof file",
        "tool toolResult <untrusted_context>",
        "agent text Shell said: <untrusted_context",
        "person text HANG",
        "person text SAY-HELLO",
        "agent text Hello from the script.",
        "person text SLOW",
        "person text CALLBACK child done",
        "agent text Noted: child is finished.",
      ],
    );
    const { facts } = state;
    assert.deepEqual(
      [facts.cwd, facts.model, facts.firstPrompt, facts.messageCount, facts.toolUseCount],
      ["/tmp/agent/work", "gemini-2.5-pro", "SAY-HELLO", 13, 3],
    );
    assert.deepEqual(facts.usage, { inputTokens: 800, cachedTokens: 0, outputTokens: 80, usd: null });
    const texts = new Map(entries.map(({ ref, body }) => [ref, body.text]));
    assert.deepEqual(
      leftBehind.map(({ afterRef }) => texts.get(afterRef ?? "")?.slice(0, 11)),
      ["Shell said:", "Hello from "],
      "the two prompts that were cancelled",
    );
  });

  it("a session without a prompt has an unknown state", async () => {
    const family = (await families(recorded)).get(EMPTY);
    assert.equal(family?.judgement?.state, "unknown");
    assert.equal((await readRoot(recorded)).get(EMPTY)?.reading.state.facts.firstPrompt, null);
  });
});

describe("Gemini CLI's sessions", () => {
  let folder: string;
  let count = 0;
  const fresh = (): string => join(folder, String((count += 1)));
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "kinfold-gemini-"));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const stateOf = async (chat: Recording): Promise<string> => {
    const root = fresh();
    await chat.write(root);
    const family = (await families(root)).get(chat.id);
    return `${family?.judgement?.state} ${family?.judgement?.confidence}`;
  };
  const call = (status: string, fields = {}) => ({
    id: `c-${status}`,
    name: "run_shell_command",
    status,
    ...fields,
  });

  it("its state is decided by how its file ends, and is not certain unless a record confirms it", async () => {
    const asked = () => new Recording("s").user("Do X");
    assert.equal(await stateOf(asked()), "interrupted guess");
    assert.equal(await stateOf(asked().answer("Done.")), "completed likely");
    assert.equal(await stateOf(asked().answer("")), "interrupted guess");
    assert.equal(await stateOf(asked().calls(call("success"))), "interrupted guess");
    assert.equal(await stateOf(asked().calls(call("executing"))), "interrupted guess");
    assert.equal(await stateOf(asked().calls(call("cancelled"))), "interrupted certain");
    assert.equal(await stateOf(asked().message("info", "Request cancelled.")), "interrupted certain");
    assert.equal(await stateOf(asked().message("error", "[API Error: 400]")), "failed likely");
    assert.equal(
      await stateOf(asked().answer("Done.").message("info", "A new version.")),
      "completed likely",
    );
    assert.equal(
      await stateOf(asked().message("error", "x").user("Again").answer("Done.")),
      "completed likely",
    );
  });

  it("a rewind leaves later messages behind and restores the earlier state", async () => {
    const root = fresh();
    const chat = new Recording("s").user("One").answer("First.").user("Two").answer("Second.");
    chat.row({ $rewindTo: "s-3" });
    await chat.write(root);
    const { leftBehind, state } = (await readRoot(root)).get("s")!.reading;
    assert.deepEqual(
      leftBehind.map(({ afterRef, beforeRef }) => [afterRef, beforeRef]),
      [["s-2", null]],
    );
    assert.deepEqual([state.facts.ending.kind, state.facts.ending.at !== null], ["ended", true]);
    chat.row({ $rewindTo: "nobody" });
    await chat.write(root);
    const all = (await readRoot(root)).get("s")!.reading;
    assert.equal(
      all.leftBehind.at(-1)?.afterRef,
      null,
      "the agent begins anew when it does not know the message",
    );
    assert.equal(all.state.facts.ending.kind, "empty");
  });

  it("a message that is written again is the same entry, and its usage counts once", async () => {
    const root = fresh();
    const chat = new Recording("s").user("Do X").answer("Working");
    const first = chat.rows.at(-1) as Record<string, unknown>;
    chat.row({ ...first, content: "Working on it.", tokens: { input: 30, output: 2, cached: 4 } });
    await chat.write(root);
    const { entries, state } = (await readRoot(root)).get("s")!.reading;
    assert.deepEqual(
      entries.map(({ body }) => body.text),
      ["Do X", "Working on it."],
    );
    assert.deepEqual(state.facts.usage, { inputTokens: 26, cachedTokens: 4, outputTokens: 3, usd: null });
    assert.equal(state.facts.messageCount, 2);
  });

  it("a message that was given and is then written again comes as another entry that replaces it", async () => {
    const root = fresh();
    const chat = new Recording("s").user("Do X").answer("Version A", { thoughts: [{ subject: "Old" }] });
    await chat.write(root);
    const { found, reading } = (await readRoot(root)).get("s")!;
    const first = chat.rows.at(-1) as Record<string, unknown>;
    const newer = { ...first, content: "Version B", thoughts: [{ subject: "New" }] };
    await chat
      .row(newer)
      .row({ $set: { lastUpdated: chat.time() } })
      .write(root);
    const grown = (await readRoot(root)).get("s")!.found;
    const [batch] = await Array.fromAsync(gemini.read(grown, reading.state));
    assert.deepEqual(
      batch?.entries.map(({ replaces, body }) => [replaces, body.text]),
      [
        ["s-2#0", "New"],
        ["s-2", "Version B"],
      ],
    );
    const refs = new Set([...reading.entries, ...(batch?.entries ?? [])].map(({ ref }) => ref));
    assert.equal(
      refs.size,
      5,
      "no ref comes twice, so a store that keeps the first of each has the last text",
    );
    const after = await readAll(gemini, grown, { state: reading.state });
    const again = await Array.fromAsync(gemini.read(grown, after.state));
    assert.deepEqual(
      again.flatMap(({ entries }) => entries),
      [],
    );
    for (const entriesMax of [1, 2, 50]) {
      const page = await gemini.tail(found, { entriesMax });
      assert.deepEqual(
        page.entries.map(({ ref, replaces, body }) => [ref, replaces, body.text]).slice(-2),
        [
          ["s-2#0", undefined, "New"],
          ["s-2", undefined, "Version B"],
        ],
        "a page has it once, as it is now",
      );
    }
  });

  it("rewriting an earlier prompt or answer does not change the session's state", async () => {
    const root = fresh();
    const chat = new Recording("s").user("One").answer("First.").user("Two").answer("Second.");
    const [prompt] = chat.messages;
    await chat.row({ ...prompt, content: [{ text: "One, and more" }] }).write(root);
    const { entries, state } = (await readRoot(root)).get("s")!.reading;
    assert.equal(state.facts.ending.kind, "ended");
    assert.deepEqual(
      entries.map(({ body }) => body.text),
      ["One, and more", "First.", "Two", "Second."],
    );
    chat.user("Three").row({ ...chat.messages[1], content: "First again." });
    await chat.write(root);
    assert.equal((await readRoot(root)).get("s")!.reading.state.facts.ending.kind, "prompted");
  });

  it("compression removes no entries, and the text that it adds is a notice", async () => {
    const root = fresh();
    const chat = new Recording("s").user("One").answer("First.").user("Two").answer("Second.");
    const kept = chat.messages.slice(2);
    const summary = {
      id: "sum",
      timestamp: chat.time(),
      type: "user",
      content: [{ text: "<state_snapshot>" }],
    };
    chat.row({ $set: { messages: [summary, ...kept], summary: "About one and two" } });
    await chat.write(root);
    const { entries, state, leftBehind } = (await readRoot(root)).get("s")!.reading;
    assert.deepEqual(leftBehind, []);
    assert.deepEqual(
      entries.map(({ author, kind }) => `${author} ${kind}`),
      ["person text", "agent text", "person text", "agent text", "agent notice"],
    );
    assert.deepEqual([state.facts.title, state.facts.ending.kind], ["About one and two", "ended"]);
  });

  it("sub-agents are below the call that names them, at every depth, with their states", async () => {
    const root = fresh();
    const spawn = (id: string, agentId: string, status: string) => ({
      id,
      name: "investigator",
      agentId,
      status,
      args: { objective: `Work of ${agentId}` },
      result: [
        { functionResponse: { id, response: status === "error" ? { error: "it broke" } : { output: "ok" } } },
      ],
    });
    const top = new Recording("top").user("Go").calls(spawn("c1", "a", "success"), spawn("c2", "b", "error"));
    await top.answer("All done.").write(root);
    const sub = (id: string) =>
      new Recording(id, { kind: "subagent", directories: ["/w/app"] }).user(`Work of ${id}`);
    await sub("a")
      .calls(spawn("c3", "deep", "success"))
      .answer("Done.")
      .write(root, "tmp/app/chats/top/a.jsonl");
    await sub("b").answer("").write(root, "tmp/app/chats/top/b.jsonl");
    await sub("open").answer("").write(root, "tmp/app/chats/top/open.jsonl");
    await sub("done").calls({ id: "c4", name: "complete_task" }).write(root, "tmp/app/chats/top/done.jsonl");
    await sub("deep").answer("Deep.").write(root, "tmp/app/chats/a/deep.jsonl");
    const family = (await families(root)).get("top");
    assert.deepEqual(
      family?.agents
        .map(({ status: { agentId, depth, toolUseId, parentAgentId, state, confidence } }) =>
          [depth, agentId, parentAgentId, toolUseId, state, confidence].join(" "),
        )
        .toSorted(),
      [
        "1 a  c1 completed certain",
        "1 b  c2 failed certain",
        "1 done   completed certain",
        "1 open   interrupted guess",
        "2 deep a c3 completed certain",
      ],
    );
    assert.equal(family?.agents.find(({ status }) => status.agentId === "b")?.status.error, "it broke");
    const all = await readRoot(root);
    assert.equal(all.get("deep")?.found.rootKey, all.get("top")?.found.key);
    assert.ok(all.get("a")?.reading.entries.every(({ isSubagent }) => isSubagent));
    assert.equal(all.get("a")?.reading.entries[0]?.author, "session");
    assert.equal(all.get("a")?.reading.state.facts.cwd, "/w/app");
  });

  it("the project's folder comes from its marker, its hash, or the context given to the model", async () => {
    const cwdOf = async (
      lay: (root: string, chat: Recording) => Promise<void>,
      projectHash = "0",
    ): Promise<unknown> => {
      const root = fresh();
      const chat = new Recording("s", { projectHash });
      chat.row({
        $set: {
          messages: [
            {
              id: "m",
              type: "user",
              content: [
                { text: "<session_context>\n- **Workspace Directories:**\n  - /said\n</session_context>" },
              ],
            },
          ],
        },
      });
      await chat.user("Hi").write(root);
      await lay(root, chat);
      return (await readRoot(root)).get("s")?.reading.state.facts.cwd;
    };
    assert.equal(await cwdOf(async () => undefined), "/said");
    const projects = (root: string, list: Record<string, string>) =>
      writeFile(join(root, "projects.json"), JSON.stringify({ projects: list }));
    assert.equal(await cwdOf((root) => projects(root, { "/w/x": "other", "/w/app": "app" })), "/w/app");
    const byHash = hash("sha256", "/w/hashed", "hex");
    assert.equal(
      await cwdOf((root) => projects(root, { "/w/app": "app", "/w/hashed": "h" }), byHash),
      "/w/hashed",
    );
    assert.equal(
      await cwdOf((root) => writeFile(join(root, "tmp/app/.project_root"), "/w/marked\n")),
      "/w/marked",
    );
  });

  it("an old file, one JSON object, reads the same as lines, and a copy of it in lines is read instead", async () => {
    const root = fresh();
    const chat = new Recording("s")
      .user('A "prompt"\nwith [brackets}')
      .calls(call("success"))
      .answer("Done.");
    const path = await chat.writeWhole(root, { summary: "Old" });
    const old = (await readRoot(root)).get("s")!;
    assert.equal(old.found.path, path);
    await chat.row({ $set: { summary: "Old" } }).write(root);
    const now = (await readRoot(root)).get("s")!;
    assert.equal(now.found.path, `${path}l`);
    assert.equal(now.found.key, old.found.key, "its key is the same for good");
    assert.deepEqual(now.reading.entries, old.reading.entries);
    assert.deepEqual(now.reading.state.facts, old.reading.state.facts);
  });

  it("an old file with nothing before its list, nothing in it, or torn at any byte is read as far as it goes", async () => {
    const root = fresh();
    const chat = new Recording("s").user("One").answer("First.");
    const path = await chat.writeWhole(root);
    const found = (await readRoot(root)).get("s")!.found;
    const message = JSON.stringify(chat.messages[0]);
    const read = async (text: string): Promise<number> => {
      await writeFile(path, text);
      const batches = await Array.fromAsync(gemini.read(found, null));
      await gemini.tail(found, { entriesMax: 3 });
      return batches.flatMap(({ entries }) => entries).length;
    };
    assert.equal(await read(`{"messages":[${message}],"sessionId":"s"}`), 1);
    assert.equal(await read(`{"sessionId":"s","messages":[]}`), 0);
    assert.equal(await read(`{"sessionId":"s","messages":[${message},${message.slice(0, 40)}`), 1);
    const whole = `{"sessionId":"s", "messages": [${message} , ${message}] , "summary": "x"}`;
    for (let end = whole.indexOf("[") + 1; end < whole.length; end += 1) await read(whole.slice(0, end));
    await writeFile(path, "[1,2]");
    assert.match((await gemini.glance(found)).problem ?? "", /no list of messages/u);
  });

  it("a file that is not a session is reported with a reason, and the rest is found", async () => {
    const root = fresh();
    await new Recording("s").user("Hi").write(root);
    await mkdir(join(root, "tmp/app/chats/session-x.jsonl"));
    await writeFile(join(root, "tmp/app/logs.json"), "[]");
    await writeFile(join(root, "tmp/app/chats/other.jsonl"), "{}");
    const problems: Problem[] = [];
    const found = await Array.fromAsync(gemini.discover(root, (problem) => problems.push(problem)));
    assert.deepEqual(
      found.map(({ id }) => id),
      ["s"],
    );
    assert.deepEqual(
      problems.map(({ path, reason }) => `${basename(path)}: ${reason}`),
      [
        "other.jsonl: it is not named like a session of this agent, so it is not read",
        "session-x.jsonl: it is not a file",
      ],
    );
  });

  it("its root is in the home folder, or in the one that the environment names", () => {
    assert.deepEqual(gemini.roots({ home: "/h", env: {} }), ["/h/.gemini"]);
    assert.deepEqual(gemini.roots({ home: "/h", env: { GEMINI_CLI_HOME: "/x" } }), ["/x/.gemini"]);
  });
});
