import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { ProcessProbe } from "../../port.ts";
import { opencode } from "./index.ts";
import { families, readRoot, shapeOf, Writer } from "./testing/session.ts";

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "kinfold-opencode-"));
});
after(() => rm(folder, { recursive: true, force: true }));

async function laid(write: (writer: Writer) => void): Promise<string> {
  const root = await mkdtemp(join(folder, "root-"));
  const writer = new Writer(join(root, "opencode.db"));
  write(writer);
  writer.close();
  return root;
}

/** Simulates a machine on which a process with this start time has the database open. */
function probe(root: string, startedAt: number | null): ProcessProbe {
  const path = join(root, "opencode.db");
  return {
    startOf: () => "1",
    startedAt: () => startedAt,
    space: () => null,
    exists: () => true,
    shows: async () => true,
    holders: async (paths) => new Map(startedAt !== null && paths.has(path) ? [[path, 4242]] : []),
  };
}

async function stateOf(write: (writer: Writer) => void, startedAt: number | null = null): Promise<string> {
  const root = await laid((writer) => {
    writer.session("ses_a").user("ses_a", "Do X");
    write(writer);
  });
  const listed = await opencode.live(root, probe(root, startedAt));
  const judgement = (await families(root, listed)).get("ses_a")?.judgement;
  return `${judgement?.state} ${judgement?.confidence}`;
}

const EARLY = Date.UTC(2026, 7, 1, 9);
const LATE = Date.UTC(2026, 7, 1, 11);
const open = { time: { created: Date.UTC(2026, 7, 1, 10, 1) }, finish: undefined };
const aborted = { error: { name: "MessageAbortedError", data: { message: "Aborted" } }, finish: undefined };
const failed = { error: { name: "APIError", data: { message: "400 no" } }, finish: undefined };

describe("the state of an OpenCode session", () => {
  it("is decided by its last answer, never by a file's age", async () => {
    assert.equal(await stateOf(() => undefined), "interrupted certain");
    assert.equal(await stateOf((writer) => writer.answer("ses_a", "Done.")), "completed certain");
    assert.equal(await stateOf((writer) => writer.answer("ses_a", "Half", open)), "interrupted certain");
    assert.equal(await stateOf((writer) => writer.answer("ses_a", "Half", aborted)), "interrupted certain");
    assert.equal(await stateOf((writer) => writer.answer("ses_a", "", failed)), "failed likely");
    assert.equal(
      await stateOf((writer) => writer.answer("ses_a", "Calling", { finish: "tool-calls" })),
      "interrupted certain",
    );
    assert.equal(
      await stateOf((writer) => writer.answer("ses_a", "Old", { finish: undefined })),
      "completed likely",
    );
    assert.equal(
      await stateOf((writer) => writer.answer("ses_a", "x", { finish: "error" })),
      "failed likely",
    );
    const again = (writer: Writer): void => {
      writer.answer("ses_a", "", failed);
      writer.user("ses_a", "Again");
      writer.answer("ses_a", "Done.");
    };
    assert.equal(await stateOf(again), "completed certain", "a later prompt begins anew");
  });

  it("is running while a process that was there then has the database open", async () => {
    const working = (writer: Writer): unknown => writer.answer("ses_a", "Half", open);
    assert.equal(await stateOf(working, EARLY), "running likely");
    assert.equal(await stateOf(working, LATE), "interrupted certain", "the process began later");
    assert.equal(await stateOf((writer) => writer.answer("ses_a", "Done."), EARLY), "completed certain");
  });

  it("is not known to be over for a version that holds no database open", async () => {
    const root = await laid((writer) => {
      writer.session("ses_a", { version: "1.1.5" }).user("ses_a", "Do X");
    });
    assert.equal((await families(root)).get("ses_a")?.judgement?.confidence, "guess");
  });

  it("is unknown when nothing was said", async () => {
    const root = await laid((writer) => writer.session("ses_a"));
    assert.equal((await families(root)).get("ses_a")?.judgement?.state, "unknown");
  });
});

describe("the state of OpenCode's sub-agents", () => {
  const child = (writer: Writer, id: string, fields = {}): void => {
    writer.session(id, { parent_id: "ses_a", title: `work ${id} (@general subagent)`, ...fields });
    writer.user(id, `Do ${id}`);
  };
  const metadata = (sessionId: string, more = {}) => ({
    metadata: { sessionId, parentSessionId: "ses_a", ...more },
  });
  const top = (writer: Writer): void => {
    writer.session("ses_a").user("ses_a", "Go");
  };

  it("by the result of the call: completed, failed, aborted, cancelled, refused", async () => {
    const root = await laid((writer) => {
      top(writer);
      const results = {
        done: {
          status: "completed",
          output: '<task id="ses_done" state="completed">\n<task_result>\nok\n</task_result>\n</task>',
        },
        broken: { status: "error", error: "Subagent failed (task_id: ses_broken): 400 no" },
        aborted: { status: "error", error: "Tool execution aborted", interrupted: true },
        cancelled: { status: "error", error: "Task cancelled" },
        refused: { status: "error", error: "The user rejected permission to use this specific tool call." },
      };
      for (const [name, { interrupted, ...state }] of Object.entries(
        results as Record<string, Record<string, unknown>>,
      )) {
        child(writer, `ses_${name}`);
        writer.answer(`ses_${name}`, "Said.");
        writer.task("ses_a", name, {
          ...state,
          ...metadata(`ses_${name}`, interrupted === true ? { interrupted } : {}),
        });
      }
      writer.answer("ses_a", "Done.");
    });
    const family = (await families(root)).get("ses_a");
    assert.deepEqual(shapeOf(family), [
      "1 ses_done done completed certain",
      "1 ses_broken broken failed certain",
      "1 ses_aborted aborted interrupted certain",
      "1 ses_cancelled cancelled cancelled certain",
      "1 ses_refused refused cancelled certain",
    ]);
    assert.match(family?.agents[1]?.status.error ?? "", /400 no/u);
    assert.equal(family?.judgement?.state, "completed");
  });

  it("a call without a result: running with its process, interrupted without, orphaned without a session", async () => {
    const root = await laid((writer) => {
      top(writer);
      child(writer, "ses_b");
      writer.answer("ses_b", "Half", open);
      writer.task("ses_a", "call_b", { status: "running", ...metadata("ses_b") }, { ...open });
    });
    const states = async (startedAt: number | null): Promise<string[]> => {
      const listed = await opencode.live(root, probe(root, startedAt));
      const family = (await families(root, listed)).get("ses_a");
      return [...shapeOf(family), family?.judgement?.state ?? ""];
    };
    assert.deepEqual(await states(EARLY), ["1 ses_b call_b running likely", "running"]);
    assert.deepEqual(await states(null), ["1 ses_b call_b interrupted certain", "interrupted"]);
    const gone = await laid((writer) => {
      top(writer);
      writer.task("ses_a", "call_c", { status: "running", ...metadata("ses_c") });
      writer.answer("ses_a", "Never mind.");
    });
    assert.deepEqual(shapeOf((await families(gone)).get("ses_a")), ["1 ses_c call_c orphaned certain"]);
  });

  it("in the background: launched, and its end reported in a message; the parent is not done before it", async () => {
    const launched = {
      status: "completed",
      output: '<task id="ses_b" state="running">\n<task_result>\nstarted\n</task_result>\n</task>',
      ...metadata("ses_b", { background: true }),
    };
    const write = (writer: Writer): void => {
      top(writer);
      child(writer, "ses_b");
      writer.answer("ses_b", "Half", open);
      writer.task("ses_a", "call_b", launched);
      writer.answer("ses_a", "It works in the background.");
    };
    const running = await laid(write);
    const listed = await opencode.live(running, probe(running, EARLY));
    const family = (await families(running, listed)).get("ses_a");
    assert.deepEqual(
      [...shapeOf(family), family?.judgement?.state],
      ["1 ses_b call_b running likely", "running"],
    );
    const ended = await laid((writer) => {
      write(writer);
      const text = '<task id="ses_b" state="error">\n<task_error>\n400 no\n</task_error>\n</task>';
      writer.user("ses_a", text, { synthetic: true });
      writer.answer("ses_a", "It failed.");
    });
    const later = (await families(ended)).get("ses_a");
    assert.deepEqual(shapeOf(later), ["1 ses_b call_b failed certain"]);
    assert.equal(later?.agents[0]?.status.error, "400 no");
    const entries = (await readRoot(ended)).get("ses_a")?.reading.entries ?? [];
    assert.deepEqual(
      entries.filter(({ kind }) => kind === "callback").map(({ author }) => author),
      ["session"],
    );
  });

  it("nested at every depth, linked by the text of a result if nothing else names the sub-agent", async () => {
    const root = await laid((writer) => {
      top(writer);
      child(writer, "ses_b");
      child(writer, "ses_c", { parent_id: "ses_b" });
      writer.answer("ses_c", "Deep.");
      writer.task("ses_b", "call_c", {
        status: "completed",
        output: "Deep.\n\n<task_metadata>\ntask_id: ses_c\n</task_metadata>",
      });
      writer.answer("ses_b", "Done.");
      writer.task("ses_a", "call_b", { status: "completed", output: "task_id: ses_b" });
      writer.answer("ses_a", "Done.");
      writer.session("ses_lost", { parent_id: "ses_gone" }).user("ses_lost", "Hi");
      writer.session("ses_x", { parent_id: "ses_y" }).session("ses_y", { parent_id: "ses_x" });
    });
    const all = await families(root);
    assert.deepEqual(shapeOf(all.get("ses_a")), [
      "1 ses_b call_b completed certain",
      "2 ses_c call_c completed certain",
    ]);
    const agents = [...all.values()].flatMap(({ agents: below }) =>
      below.map(({ status }) => status.agentId),
    );
    const expected = ["ses_b", "ses_c", "ses_lost", "ses_x", "ses_y"];
    assert.deepEqual(agents.toSorted(), expected, "nobody is lost, not even in a circle");
    assert.equal((await readRoot(root)).get("ses_c")?.found.rootKey, "opencode:ses_a");
  });

  it("a sub-agent that was called again has the state of its last call", async () => {
    const root = await laid((writer) => {
      top(writer);
      child(writer, "ses_b");
      writer.answer("ses_b", "Done.");
      writer.task("ses_a", "call_1", { status: "completed", output: "ok", ...metadata("ses_b") });
      writer.user("ses_b", "More");
      writer.answer("ses_b", "", failed);
      writer.task("ses_a", "call_2", { status: "error", error: "400 no", ...metadata("ses_b") });
      writer.answer("ses_a", "Done.");
    });
    const family = (await families(root)).get("ses_a");
    assert.deepEqual(
      family?.agents.map(({ status: { agentId, state } }) => `${agentId} ${state}`),
      ["ses_b failed"],
    );
    assert.deepEqual(
      ["call_1", "call_2"].map((call) => family?.byCall.get(call)?.[0]?.key),
      ["opencode:ses_b", "opencode:ses_b"],
    );
  });
});
