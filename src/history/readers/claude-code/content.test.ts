import assert from "node:assert/strict";
import { appendFile, mkdtemp, rm, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { FoundSession } from "../../port.ts";
import { discoverAll, readAll } from "../../reader.spec.ts";
import { claudeCode } from "./index.ts";
import { lay, notice, Transcript } from "./testing/transcript.ts";

const S = "11111111-1111-4111-8111-111111111111";
const MAIN = `-w-app/${S}.jsonl`;

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "kinfold-claude-"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const main = (): Transcript => new Transcript(S).user("Do X");
const bash = (id: string, command: string) => ({ type: "tool_use", id, name: "Bash", input: { command } });
const find = async (): Promise<FoundSession> => {
  const [found] = await discoverAll(claudeCode, root);
  assert.ok(found);
  return found;
};
const reading = async (transcript: Transcript) => {
  await lay(root, { [MAIN]: transcript });
  return readAll(claudeCode, await find());
};
const texts = ({ entries }: Awaited<ReturnType<typeof reading>>): string[] =>
  entries.map(({ author, kind, body }) => `${author} ${kind} ${body.text}`);

describe("who wrote what", () => {
  it("is decided by a row's fields first, then by its wording", async () => {
    const row = main();
    row.user("<system-reminder>mind the gap</system-reminder>", { isMeta: true });
    row.user("This session is continued from …", { isCompactSummary: true, isVisibleInTranscriptOnly: true });
    row.user(
      "<command-name>/review</command-name><command-message>review</command-message><command-args>now</command-args>",
    );
    row
      .user("<bash-input>ls</bash-input>")
      .user("<bash-stdout>a.txt</bash-stdout><bash-stderr></bash-stderr>");
    row.user("<task-notification> what is this?", { origin: { kind: "human" } });
    row.user(notice("b1", "t9", "completed"));
    row.user('<teammate-message teammate_id="ann">hello</teammate-message>');
    row.row("attachment", { attachment: { type: "queued_command", prompt: "and Y" } });
    row.row("system", { subtype: "away_summary", content: "You were away" });
    assert.deepEqual(texts(await reading(row)), [
      "person text Do X",
      "agent notice <system-reminder>mind the gap</system-reminder>",
      "agent notice This session is continued from …",
      "person text /review now",
      "person text ! ls",
      "agent notice a.txt",
      "person text <task-notification> what is this?",
      `session callback ${notice("b1", "t9", "completed")}`,
      'session text <teammate-message teammate_id="ann">hello</teammate-message>',
      "person text and Y",
      "agent notice You were away",
    ]);
  });

  it("calls and results carry tool, command, paths and success", async () => {
    const row = main().answer([
      { type: "thinking", thinking: "Hm", signature: "x" },
      bash("b1", "false"),
      { type: "tool_use", id: "r1", name: "Read", input: { file_path: "/w/a" } },
    ]);
    row
      .result("b1", "failed", { isError: true, toolUseResult: { stdout: "", stderr: "failed", exitCode: 1 } })
      .result("r1", "text");
    row.answer([
      {
        type: "tool_use",
        id: "p1",
        name: "TodoWrite",
        input: {
          todos: [
            { content: "One", status: "completed" },
            { content: "Two", status: "pending" },
          ],
        },
      },
    ]);
    const { entries, state } = await reading(row.says("Done."));
    assert.deepEqual(
      entries.slice(1).map(({ kind, body }) => ({ kind, ...body })),
      [
        { kind: "thought", text: "Hm" },
        {
          kind: "toolCall",
          text: "false",
          tool: "Bash",
          callId: "b1",
          input: { command: "false" },
          command: "false",
        },
        {
          kind: "toolCall",
          text: "/w/a",
          tool: "Read",
          callId: "r1",
          input: { file_path: "/w/a" },
          paths: ["/w/a"],
        },
        {
          kind: "toolResult",
          text: "failed",
          callId: "b1",
          ok: false,
          tool: "Bash",
          command: "false",
          exitCode: 1,
        },
        { kind: "toolResult", text: "text", callId: "r1", ok: true, tool: "Read" },
        {
          kind: "plan",
          text: "- One\n- Two",
          steps: [
            { title: "One", status: "completed" },
            { title: "Two", status: "pending" },
          ],
        },
        { kind: "text", text: "Done." },
      ],
    );
    assert.deepEqual(
      [state.facts.messageCount, state.facts.toolUseCount],
      [4, 3],
      "an answer in three rows is one",
    );
  });

  it("the usage of an answer is counted once, although each of its rows repeats it", async () => {
    const { state } = await reading(
      main()
        .answer([bash("b1", "ls"), bash("b2", "ls")])
        .says("Done."),
    );
    assert.deepEqual(state.facts.usage, { inputTokens: 26, cachedTokens: 200, outputTokens: 40, usd: null });
  });

  it("a title given by a person takes precedence over the agent's", async () => {
    const { state } = await reading(
      main()
        .beside({ type: "summary", summary: "Old", leafUuid: "x" })
        .beside({ type: "ai-title", aiTitle: "Made" })
        .beside({ type: "custom-title", customTitle: "Mine" })
        .beside({ type: "ai-title", aiTitle: "Made again" }),
    );
    assert.equal(state.facts.title, "Mine");
  });

  it("rows of another folder (a worktree) change neither the session nor its folder", async () => {
    const { state, entries } = await reading(
      main().says("Hi").user("Go on", { cwd: "/w/app-tree", gitBranch: "topic" }),
    );
    assert.deepEqual([state.facts.cwd, state.facts.gitBranch, entries.length], ["/w/app", "topic", 3]);
  });
});

describe("the graph", () => {
  it("a rewind leaves the other branch behind, and every row is still there", async () => {
    const row = main().says("First").endsTurn();
    const before = row.lastId;
    row.user("Wrong way").says("Walking").endsTurn();
    row.user("Right way", { parentUuid: before }).says("There");
    const { entries, leftBehind } = await reading(row);
    assert.equal(entries.length, 6);
    const right = entries.find(({ body }) => body.text === "Right way")?.ref;
    assert.deepEqual(
      leftBehind.map(({ afterRef, beforeRef }) => [afterRef, beforeRef]),
      [[entries[1]?.ref, right]],
    );
  });

  it("a rewind over many rows names the entry before it; a rewind to the first prompt names none", async () => {
    const far = main().says("First.").endsTurn();
    const answer = far.rows[1]?.["uuid"];
    const turnEnd = far.rows[2]?.["uuid"];
    for (let count = 0; count < 100; count += 1) far.user(`Ask ${count}`).says(`Answer ${count}`);
    far.user("Again", { parentUuid: turnEnd }).says("Fresh.").user("Once more", { parentUuid: turnEnd });
    const again = (await reading(far)).leftBehind;
    assert.deepEqual(
      again.map(({ afterRef }) => afterRef),
      [answer, answer],
    );
    const inside = main().answer([{ type: "text", text: "Half" }], null);
    const half = inside.lastId;
    for (let count = 0; count < 100; count += 1) inside.says(`More ${count}`);
    const read = await reading(inside.user("Again", { parentUuid: half }));
    const [left] = read.leftBehind;
    assert.ok(
      read.entries.some(({ ref }) => ref === left?.afterRef),
      "where the place is not known any more, it is an entry after it",
    );
    const first = main().says("First.").endsTurn().user("Other words", { parentUuid: null }).says("Fresh.");
    assert.deepEqual(
      (await reading(first)).leftBehind.map(({ afterRef }) => afterRef),
      [null],
    );
    const elsewhere = main().says("First.").user("More", { parentUuid: "in another file" });
    const twice = main().says("First.");
    twice.rows.push(...twice.rows.map((row) => ({ ...row })));
    for (const row of [elsewhere, twice]) assert.deepEqual((await reading(row)).leftBehind, []);
  });

  it("parallel calls, bookkeeping rows, late errors, bridges and replays are no rewinds", async () => {
    const parallel = main().answer([bash("b1", "one"), bash("b2", "two")]);
    const first = parallel.rows.find(({ type }) => type === "assistant");
    parallel.result("b2", "2").result("b1", "1", { parentUuid: first?.["uuid"] });
    const side = parallel.lastId;
    parallel
      .row("attachment", { attachment: { type: "task_reminder" } })
      .row("progress", { data: { type: "hook_progress" } });
    parallel.user("Next", { parentUuid: side }).says("Fine");

    const late = main().row("system", {
      subtype: "api_error",
      level: "error",
      error: { message: "overloaded" },
    });
    const error = late.lastId;
    late.says("Fine", "end_turn").user("Next", { parentUuid: error }).says("Yes");

    const bridge = main()
      .says("Hi")
      .row("progress", { data: { type: "agent_progress" } })
      .user("Next")
      .says("Yes");

    const replay = main();
    const start = replay.lastId;
    const timestamp = "2026-08-01T10:00:09.000Z";
    replay.user("Again", { timestamp, parentUuid: start }).user("Again", { timestamp, parentUuid: start });
    for (const row of [parallel, late, bridge, replay]) assert.deepEqual((await reading(row)).leftBehind, []);
  });

  it("compactions leave nothing behind, even when the row before one is in another file", async () => {
    const boundary = (logicalParentUuid: string) => ({
      subtype: "compact_boundary",
      parentUuid: null,
      logicalParentUuid,
      content: "Conversation compacted",
      compactMetadata: { trigger: "auto", preTokens: 9 },
    });
    const row = main().says("One").endsTurn();
    row
      .row("system", boundary(row.lastId))
      .user("Summary", { isCompactSummary: true })
      .user("Two")
      .says("2")
      .endsTurn();
    row
      .row("system", boundary("elsewhere"))
      .user("Summary", { isCompactSummary: true })
      .user("Three")
      .says("3")
      .endsTurn();
    const read = await reading(row);
    assert.deepEqual(read.leftBehind, []);
    assert.equal(read.entries.filter(({ body }) => body.text === "Conversation compacted").length, 2);
    assert.deepEqual(
      read.entries.filter(({ author }) => author === "person").map(({ body }) => body.text),
      ["Do X", "Two", "Three"],
    );
    assert.equal(read.state.facts.ending.kind, "ended");
  });
});

describe("large and broken", () => {
  it("a truncated last line is left for later, but a complete one without a newline is read", async () => {
    const row = main().says("Done.");
    await lay(root, { [MAIN]: row.text().trimEnd() });
    const found = await find();
    const whole = await readAll(claudeCode, found);
    assert.equal(whole.entries.length, 2);
    await truncate(found.path, found.sizeBytes - 1);
    assert.equal((await readAll(claudeCode, found)).entries.length, 1);
    await appendFile(found.path, `}\n${JSON.stringify({ type: "ai-title", aiTitle: "T" })}\n`);
    const after = await readAll(claudeCode, found, { before: await readAll(claudeCode, found) });
    assert.deepEqual([after.entries.length, after.badCount, after.state.facts.title], [2, 0, "T"]);
  });

  it("a line of 20 MB is read, and its text is cut and marked as cut", async () => {
    const row = main()
      .answer([bash("b1", "cat")])
      .result("b1", "x".repeat(20 * 1024 * 1024))
      .says("Long.");
    const { entries, badCount } = await reading(row);
    const text = entries[2]?.body.text ?? "";
    assert.equal(badCount, 0);
    assert.ok(text.length < 300_000 && /more characters are in the agent's own file/.test(text));
  });

  it("a large output is read from the session's own folder, never from the path that a row names", async () => {
    const stub = (path: string) =>
      `<persisted-output>\nOutput too large (90KB). Full output saved to: ${path}\n\nPreview (first 2KB):\nall of\n</persisted-output>`;
    const row = main().answer([bash("b1", "cat"), bash("b2", "cat")]);
    row
      .result("b1", stub(`/h/.claude/projects/-w-app/${S}/tool-results/out-1.txt`))
      .result("b2", stub("/etc/secret.txt"));
    await lay(root, { [MAIN]: row, [`-w-app/${S}/tool-results/out-1.txt`]: "all of it" });
    const { entries } = await readAll(claudeCode, await find());
    assert.equal(entries[3]?.body.text, "all of it");
    assert.match(entries[4]?.body.text ?? "", /^<persisted-output>/);
  });

  it("BOM, CRLF, blank lines and unknown rows are not errors; each bad line is listed", async () => {
    const lines = main()
      .says("Done.")
      .rows.map((row) => JSON.stringify(row));
    await lay(root, {
      [MAIN]: `\ufeff${lines[0]}\r\n\r\n{"type":"brand-new","x":1}\r\nnonsense\r\n{"type":\r\n${lines[1]}\r\n`,
    });
    const bad = [];
    for await (const batch of claudeCode.read(await find(), null)) bad.push(...batch.bad);
    assert.deepEqual(
      bad.map(({ line, reason }) => `${line} ${reason}`),
      ["4 is not a JSON object", "5 is not JSON"],
    );
    assert.equal((await readAll(claudeCode, await find())).entries.length, 2);
  });

  it("a glance at a large file takes title and folder from its head, and the state from its tail", async () => {
    const row = main().beside({ type: "ai-title", aiTitle: "Long work" });
    for (let index = 0; index < 400; index += 1)
      row.answer([bash(`b${index}`, "x".repeat(500))]).result(`b${index}`, "y".repeat(500));
    await lay(root, { [MAIN]: row.says("Done.").endsTurn() });
    const { facts, whole, problem } = await claudeCode.glance(await find());
    assert.deepEqual([problem, whole], [null, false]);
    assert.deepEqual(
      [facts.title, facts.cwd, facts.firstPrompt, facts.ending.kind, facts.ending.confirmed],
      ["Long work", "/w/app", "Do X", "ended", true],
    );
  });
});
