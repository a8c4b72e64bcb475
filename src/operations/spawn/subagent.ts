import type { InputOf, SpawnOutput, SubagentOutput } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { shortId } from "../../contract/short-id.ts";
import { lowered } from "../../domain/limit.ts";
import type { ChainStep } from "../../kernel/chain.ts";
import { newId } from "../../system/id.ts";
import type { SessionRecord } from "../../store/port/store.ts";
import { asking, takeAttention } from "../wait/attention.ts";
import { blocking } from "../wait/blocking.ts";
import { stepsOf } from "./chain-step.ts";
import type { Handler, OperationDeps } from "../deps.ts";
import type { CallerContext, Call } from "../port.ts";
import { spawn } from "./spawn.ts";
import { decideStart } from "./effective.ts";
import { takeEnds } from "../wait/children.ts";
import { encodeCursor } from "../wait/cursor.ts";
import { callerSession } from "../access/authority.ts";

type Result = SubagentOutput["results"][number];
type Task = InputOf<"subagent">["tasks"][number];

/** Runs short tasks in children, in parallel or as a chain, and waits for as long as the client allows. */
export const subagent: Handler<"subagent"> = async (deps, caller, { input, call }) => {
  const self = callerSession(caller);
  if (self === null || caller.kind !== "session") {
    throw new Refusal("forbidden", "Only a session runs subagents; a person uses kinfold run.");
  }
  const chainId = newId();
  const begun =
    input.mode === "chain"
      ? [await beginChain(deps, caller, { self, tasks: input.tasks, chainId, call })]
      : await Promise.all(input.tasks.map((task) => beginOne(deps, caller, { self, task, call })));
  const firsts = begun.flatMap((each) => (typeof each === "string" ? [] : [each.session.id]));
  if (firsts.length === 0) throw new Refusal("invalid_input", `No task could be started: ${begun.join(" ")}`);
  const look = async (): Promise<SessionRecord[] | null> => {
    const now = await stepsOf(deps, firsts);
    if (now.every((each) => !each.roundOpen)) return now;
    // A question ends the wait: the caller must answer it. So does a parked child, which may not end soon.
    return (await asking(deps, self, { ids: idsOf(now), shown: [] })).length > 0 ? now : null;
  };
  const found = await blocking(deps, caller, { look, timeMs: input.capMs, signal: call.signal });
  const rows = found ?? (await stepsOf(deps, firsts));
  const ends = await takeEnds(deps, caller, { self, ended: rows.filter((each) => !each.roundOpen) });
  const asked = await asking(deps, self, { ids: idsOf(rows), shown: [] });
  const needsYou = await takeAttention(deps, caller, { self, triggers: asked });
  const toResult = resultsBy(ends);
  const results =
    input.mode === "chain"
      ? rows.map((row) => toResult(row, input.tasks.map((task) => task.task).join(" → ")))
      : inOrder(input.tasks, begun, { rows, toResult });
  const open = idsOf(rows.filter((each) => each.roundOpen));
  const shown = needsYou.map((each) => shortId(each.triggerId));
  return {
    results,
    needsYou,
    isOver: open.length === 0,
    cursor: open.length === 0 ? null : encodeCursor({ ids: open, misses: 0, shown }),
    taken: [...ends, ...needsYou].flatMap((each) => each.takenId ?? []),
  };
};

function idsOf(rows: readonly SessionRecord[]): string[] {
  return rows.map((each) => each.id);
}

function resultsBy(ends: Awaited<ReturnType<typeof takeEnds>>): (row: SessionRecord, task: string) => Result {
  const endOf = new Map(ends.map((end) => [end.sessionId, end]));
  return (row, task) => {
    const end = endOf.get(row.id);
    const base = { sessionId: row.id, shortId: row.shortId, task };
    return end === undefined
      ? { ...base, outcome: "working", text: `${row.evidence.reason}` }
      : { ...base, outcome: end.outcome, text: end.block };
  };
}

/** Returns one result per task, in the order of the tasks. A task that was refused has a result too. */
function inOrder(
  tasks: readonly Task[],
  begun: readonly (SpawnOutput | string)[],
  {
    rows,
    toResult,
  }: { rows: readonly SessionRecord[]; toResult: (row: SessionRecord, task: string) => Result },
): Result[] {
  return tasks.map(({ task }, index): Result => {
    const start = begun[index];
    const row = typeof start === "object" ? rows.find((each) => each.id === start.session.id) : undefined;
    if (row !== undefined) return toResult(row, task);
    const text = typeof start === "string" ? start : "It could not be started.";
    return { sessionId: null, shortId: null, task, outcome: "refused", text };
  });
}

async function beginOne(
  deps: OperationDeps,
  caller: CallerContext,
  { self, ...order }: { self: SessionRecord; task: Task; call: Call },
): Promise<SpawnOutput | string> {
  const { task, profile, agent } = order.task;
  const input = { id: self.id, prompt: task, profile, agent };
  try {
    return await spawn(deps, caller, {
      input: input as InputOf<"spawn">,
      call: { ...order.call, callId: null },
    });
  } catch (error) {
    if (error instanceof Refusal) return `${error.code}: ${error.message}`;
    throw error;
  }
}

/** Decides the settings of all later steps now, so that no step is refused half-way. */
async function beginChain(
  deps: OperationDeps,
  caller: CallerContext,
  { self, ...order }: { self: SessionRecord; tasks: readonly Task[]; chainId: string; call: Call },
): Promise<SpawnOutput> {
  const [first, ...rest] = order.tasks;
  const steps: ChainStep[] = [];
  for (const { task, profile, agent } of rest) {
    const { effective, instructions } = await decideStart(
      deps,
      { prompt: task, profile, agent },
      { parent: self, key: null },
    );
    steps.push({ task, effective, instructions, tailChars: deps.config.tailChars });
  }
  const { task, profile, agent } = first!;
  const input = { id: self.id, prompt: task, profile, agent };
  const { spawnsPerMinuteMax, spawnsMax } = lowered(deps.config.limits, self.effective.counts);
  const chain = { chain: steps, chainId: order.chainId, chainPace: { spawnsPerMinuteMax, spawnsMax } };
  return spawn(deps, caller, {
    input: input as InputOf<"spawn">,
    call: { ...order.call, callId: null, chain },
  });
}
