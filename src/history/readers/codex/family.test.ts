import assert from "node:assert/strict";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { ProcessProbe } from "../../../system/process-probe.ts";
import { codex } from "./index.ts";
import { IDS, layAll } from "./testing/layouts.ts";
import {
  agentPath,
  answer,
  call,
  event,
  idAt,
  item,
  meta,
  NO_PROCESSES,
  output,
  prompt,
  type Read,
  readRoot,
  type Row,
  spawned,
  turn,
  writeRollout,
} from "./testing/made.ts";

const ROOT = idAt(0, "root");
const CHILD = idAt(2, "child");
const OTHER = idAt(3, "other");

describe("the sub-agents of a Codex session", () => {
  let folder: string;
  let all: Read;
  const fresh = (): Promise<string> => fs.mkdtemp(join(folder, "root-"));
  before(async () => {
    folder = await fs.mkdtemp(join(tmpdir(), "kinfold-codex-"));
    const root = await fresh();
    await layAll(root);
    all = await readRoot(root);
  });
  after(() => fs.rm(folder, { recursive: true, force: true }));

  it("with names and mail are found through the record of their start, at every depth", async () => {
    const family = await all.family(IDS.mail);
    assert.deepEqual(rowsOf(family), [
      { agentId: IDS.worker, state: "completed", toolUseId: "call_1", parentAgentId: null, depth: 1 },
      { agentId: IDS.nested, state: "failed", toolUseId: "call_2", parentAgentId: IDS.worker, depth: 2 },
    ]);
    assert.equal(family.agents[1]?.status.error, "no more credit");
    const { entries } = all.readings.get(IDS.mail) ?? { entries: [] };
    const report = entries.find(({ kind }) => kind === "callback");
    assert.equal(report?.author, "session");
    assert.match(report?.body.text ?? "", /X is done$/u);
    const task = all.readings.get(IDS.worker)?.entries[0];
    assert.deepEqual([task?.author, task?.kind, task?.isSubagent], ["session", "text", true]);
  });

  it("with names are found by their path when nothing records their start", async () => {
    const root = await fresh();
    await writeRollout(root, ROOT, [
      meta(0, ROOT),
      ...turn(1, [...prompt(1, "Go"), call(2, "call_w", "spawn_agent", { task_name: "w", message: "gAAA" })]),
    ]);
    await writeRollout(root, CHILD, [
      meta(2, CHILD, spawned(ROOT, ROOT, { agent_path: agentPath("w") })),
      ...turn(2, [answer(3, "Done.")]),
    ]);
    const family = await (await readRoot(root)).family(ROOT);
    assert.deepEqual(rowsOf(family), [
      { agentId: CHILD, state: "completed", toolUseId: "call_w", parentAgentId: null, depth: 1 },
    ]);
  });

  it("that a piece of code started are all below the call that ran the code", async () => {
    const family = await all.family(IDS.code);
    assert.deepEqual(rowsOf(family), [
      { agentId: IDS.coded, state: "completed", toolUseId: "cell_1", parentAgentId: null, depth: 1 },
      { agentId: IDS.coded2, state: "interrupted", toolUseId: "cell_1", parentAgentId: null, depth: 1 },
    ]);
    assert.equal(family.byCall.get("cell_1")?.length, 2);
  });

  it("that were forked have only their own rows, and the calls of their parent are not theirs", async () => {
    for (const [id, words] of [
      [IDS.copied, "Do it"],
      [IDS.numbered, "Do it too"],
    ] as const) {
      const { entries, state } = all.readings.get(id) ?? assert.fail();
      assert.deepEqual(
        entries.map(({ author, body }) => [author, body.text]),
        [
          ["session", words],
          ["agent", `${words}: done`],
        ],
      );
      assert.deepEqual([state.facts.calls, state.facts.firstPrompt], [[], words]);
    }
    assert.deepEqual(rowsOf(await all.family(IDS.copies)), [
      { agentId: "call_other", state: "failed", toolUseId: "call_other", parentAgentId: null, depth: 1 },
      { agentId: IDS.copied, state: "completed", toolUseId: "call_copy", parentAgentId: null, depth: 1 },
      { agentId: IDS.numbered, state: "completed", toolUseId: "call_number", parentAgentId: null, depth: 1 },
    ]);
  });

  it("that were forked without records of turns have their own rows from the first that is not older", async () => {
    const root = await fresh();
    const kid = idAt(50, "kid");
    const above = [...prompt(1, "Go"), answer(2, "Going"), call(3, "c0", "shell", { command: ["ls"] })];
    await writeRollout(root, ROOT, [
      meta(0, ROOT),
      ...above,
      call(4, "c1", "spawn_agent", { message: "Do" }),
    ]);
    const fork = meta(50, kid, spawned(ROOT, ROOT, { forked_from_id: ROOT }));
    const own = [...prompt(55, "Do"), answer(57, "Done")];
    await writeRollout(root, kid, [fork, meta(0, ROOT), ...above, ...own]);
    const { readings } = await readRoot(root);
    const { entries, state } = readings.get(kid) ?? assert.fail();
    const told = entries.map(({ author, body }) => `${author} ${body.text}`);
    assert.deepEqual(told, ["session Do", "agent Done"]);
    assert.deepEqual([state.facts.firstPrompt, state.facts.ending.kind], ["Do", "ended"]);
    const found = (await Array.fromAsync(codex.discover(root, () => undefined))).find(({ id }) => id === kid);
    const page = await codex.tail(found ?? assert.fail(), { entriesMax: 50 });
    assert.deepEqual(
      page.entries.map(({ author, body }) => `${author} ${body.text}`),
      told,
    );
  });

  it("are known by their paths, in notifications too", async () => {
    const notification = (path: string) =>
      item(5, "message", {
        role: "user",
        content: [
          {
            type: "input_text",
            text: `<subagent_notification>${JSON.stringify({ agent_path: path, status: { errored: "boom" } })}</subagent_notification>`,
          },
        ],
      });
    const started = (callId: string, id: string, name: string) =>
      event(3, "sub_agent_activity", {
        event_id: callId,
        agent_thread_id: id,
        agent_path: agentPath(name),
        kind: "started",
      });
    const named = [
      call(2, "call_w", "spawn_agent", { task_name: "Worker", message: "gAAA" }),
      started("call_w", CHILD, "Worker"),
      output(4, "call_w", { task_name: agentPath("Worker") }),
    ];
    const coded = [
      item(2, "custom_tool_call", {
        call_id: "cell",
        name: "exec",
        input: "tools.spawn_agent()",
        status: "completed",
      }),
      started("inner_1", OTHER, "Quiet"),
      started("inner_2", CHILD, "Worker"),
    ];
    for (const rows of [named, coded]) {
      const root = await fresh();
      const all = [...prompt(1, "Go"), ...rows, notification(agentPath("Worker")), answer(6, "Too bad.")];
      await writeRollout(root, ROOT, [meta(0, ROOT), ...turn(1, all)]);
      const facts = (await readRoot(root)).readings.get(ROOT)?.state.facts;
      assert.deepEqual(
        facts?.told.map(({ agentId, state, error }) => [agentId, state, error]),
        [[CHILD, "failed", "boom"]],
      );
    }
  });

  it("that Codex starts for itself are imported, but not shown as children", async () => {
    const root = await fresh();
    await writeRollout(root, ROOT, [meta(0, ROOT), ...turn(1, prompt(1, "Go"))]);
    const source = { subagent: "review" };
    const review = meta(2, CHILD, { session_id: ROOT, parent_thread_id: ROOT, source });
    await writeRollout(root, CHILD, [review, ...turn(2, [])]);
    const guardian = meta(3, OTHER, { source: { internal: "guardian" } });
    await writeRollout(root, OTHER, [guardian, ...turn(3, [])]);
    const { readings } = await readRoot(root);
    const facts = (id: string) => readings.get(id)?.state.facts;
    assert.deepEqual([facts(CHILD)?.internal, facts(CHILD)?.agentType], [true, "review"]);
    assert.deepEqual([facts(OTHER)?.internal, facts(ROOT)?.internal], [true, false]);
  });

  it("started in parallel with the same prompt are distinguished by the call's result", async () => {
    const root = await fresh();
    const calls = [CHILD, OTHER].map((_, index) =>
      call(2, `call_${index}`, "spawn_agent", { message: "Same" }),
    );
    const results = [OTHER, CHILD].map((agent_id, index) => output(3, `call_${1 - index}`, { agent_id }));
    await writeRollout(root, ROOT, [meta(0, ROOT), ...turn(1, [...prompt(1, "Go"), ...calls, ...results])]);
    for (const id of [CHILD, OTHER]) {
      await writeRollout(root, id, [meta(3, id, spawned(ROOT, ROOT)), ...turn(3, prompt(3, "Same"))]);
    }
    const family = await (await readRoot(root)).family(ROOT);
    assert.deepEqual(
      family.agents.map(({ status }) => [status.agentId, status.toolUseId]).toSorted(),
      [
        [CHILD, "call_0"],
        [OTHER, "call_1"],
      ].toSorted(),
    );
  });

  it("without a file and without a result are orphaned once their session is over", async () => {
    const root = await fresh();
    const spawn = call(2, "call_1", "spawn_agent", { message: "Go" });
    await writeRollout(root, ROOT, [meta(0, ROOT), ...turn(1, [...prompt(1, "Go"), spawn])]);
    const family = await (await readRoot(root)).family(ROOT);
    assert.deepEqual(
      family.agents.map(({ key, status }) => [key, status.state, status.toolUseId]),
      [[null, "orphaned", "call_1"]],
    );
  });

  describe("by what is known of them", () => {
    const parent = (rows: readonly Row[], isOver = true): Row[] => {
      const whole = turn(1, [
        ...prompt(1, "Go"),
        call(2, "call_1", "spawn_agent", { message: "Work" }),
        output(2, "call_1", { agent_id: CHILD }),
        ...rows,
      ]);
      return [meta(0, ROOT), ...(isOver ? whole : whole.slice(0, -1))];
    };
    const child = (rows: readonly Row[]): Row[] => [meta(2, CHILD, spawned(ROOT, ROOT)), ...rows];
    const working = [event(2, "task_started", { turn_id: "t" }), ...prompt(2, "Work")];
    const judge = async (parentRows: Row[], childRows: Row[] | null, probe: ProcessProbe = NO_PROCESSES) => {
      const root = await fresh();
      await writeRollout(root, ROOT, parentRows);
      if (childRows !== null) await writeRollout(root, CHILD, childRows);
      const family = await (await readRoot(root)).family(ROOT, probe);
      return { own: family.judgement?.state, child: family.agents[0]?.status };
    };
    const holding: ProcessProbe = {
      ...NO_PROCESSES,
      holders: async (paths) => new Map([...paths].map((path) => [path, 4242])),
    };

    it("failed by its own last turn, though its parent never got a result", async () => {
      const rows = turn(2, prompt(2, "Work"), { last_agent_message: null, error: "it broke" });
      const { child: status } = await judge(parent([], false), child(rows));
      assert.deepEqual([status?.state, status?.error], ["failed", "it broke"]);
    });

    it("running while a process holds its file, and then its parent is not done", async () => {
      const { own, child: status } = await judge(parent([]), child(working), holding);
      assert.deepEqual([own, status?.state], ["running", "running"]);
      assert.match(status?.evidence ?? "", /process 4242 holds/u);
    });

    it("interrupted when nothing holds it any more", async () => {
      const { own, child: status } = await judge(parent([], false), child(working));
      assert.deepEqual([own, status?.state], ["interrupted", "interrupted"]);
    });

    it("not running by a process that began after it stopped", async () => {
      const young = { ...holding, startedAt: () => Date.parse("2999-01-01") };
      const { child: status } = await judge(parent([], false), child(working), young);
      assert.equal(status?.state, "interrupted");
    });

    it("aborted and then continued has the state of its last turn", async () => {
      const rows = [...working, event(4, "turn_aborted", { reason: "interrupted", turn_id: "t" })];
      assert.equal((await judge(parent([]), child(rows))).child?.state, "interrupted");
      const later = [...rows, ...turn(5, prompt(5, "Again"))];
      assert.equal((await judge(parent([]), child(later))).child?.state, "completed");
    });

    it("a report from before it was prompted again is about its earlier work", async () => {
      const told = [
        call(20, "call_2", "wait_agent", { targets: [CHILD] }),
        output(21, "call_2", { status: { [CHILD]: { completed: "ok" } }, timed_out: false }),
      ];
      const done = child(turn(2, prompt(2, "Work")));
      assert.equal((await judge(parent(told), done)).child?.evidence, "wait_agent's answer says so");
      const again = [...done, event(30, "task_started", { turn_id: "t2" }), ...prompt(30, "More")];
      assert.equal((await judge(parent(told), again)).child?.state, "interrupted");
    });

    it("closed means that it is over, and its file shows how it ended", async () => {
      const rows = [
        call(5, "call_2", "close_agent", { target: CHILD }),
        output(6, "call_2", { previous_status: "shutdown" }),
      ];
      assert.equal((await judge(parent(rows), child(working))).child?.state, "interrupted");
      assert.equal((await judge(parent(rows), child(turn(2, [])))).child?.state, "completed");
    });

    it("interrupted by its parent, as the record of it says", async () => {
      const rows = [
        event(5, "sub_agent_activity", { event_id: "x", agent_thread_id: CHILD, kind: "interrupted" }),
      ];
      assert.equal((await judge(parent(rows), child(working))).child?.state, "interrupted");
    });
  });
});

function rowsOf(family: Awaited<ReturnType<Read["family"]>>): unknown[] {
  return family.agents.map(({ status: { agentId, state, toolUseId, parentAgentId, depth } }) => ({
    agentId,
    state,
    toolUseId,
    parentAgentId,
    depth,
  }));
}
