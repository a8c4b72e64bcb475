import type { CallToolResult, Progress, ProgressToken } from "@modelcontextprotocol/server";
import { OPERATIONS, Refusal } from "../../contract/index.ts";
import type { InputOf, OutputOf } from "../../contract/index.ts";
import type { Log } from "../../log.ts";
import type { Call, CallerContext, Gate, Operations } from "../../operations/port.ts";
import { refusalBody, refusalOf } from "../refusal-response.ts";
import type { HttpRequest } from "../request.ts";
import { parseInput } from "../input.ts";
import { askReply, escalateReply, fireReply, planReply, respondReply } from "./trigger-replies.ts";
import { readArguments } from "./arguments.ts";
import { waitCapMs } from "./client.ts";
import { familyReply } from "./family.ts";
import { checkpointReply, inspectReply, modelsReply, searchReply } from "./read-replies.ts";
import { cancelReply, refusalLine, spawnReply, tellReply } from "./reply.ts";
import { subagentReply } from "./subagent.ts";
import { TOOL_NAMES, isAlias, operationOf, parametersOf } from "./arguments.ts";
import type { ToolOperation } from "./arguments.ts";
import { waitReply } from "./wait.ts";
import { nearest } from "../../text/nearest.ts";

export interface ToolCall {
  readonly operations: Operations;
  readonly gate: Gate;
  readonly log: Log;
  readonly request: HttpRequest;
  readonly clientName: string | null;
  /** Whether the daemon can wake the caller with a message. If not, only replies to calls carry messages. */
  readonly isWakeable: boolean;
  readonly tool: string;
  readonly args: Record<string, unknown>;
  readonly meta: Record<string, unknown>;
  readonly signal: AbortSignal;
  readonly progress: (params: Progress & { progressToken: ProgressToken }) => Promise<void>;
}

const PROGRESS_MS = 10_000;
const WAIT_LEAST_MS = 10_000;

export async function callTool(call: ToolCall): Promise<CallToolResult> {
  const isJson = call.meta["kinfold/json"] === true;
  try {
    const { output, text } = await run(call, toolOperation(call.tool));
    return { content: [{ type: "text", text: isJson ? JSON.stringify(output) : text }] };
  } catch (error) {
    const refusal = refusalFor(call, error);
    const text = isJson ? JSON.stringify(refusalBody(refusal)) : refusalLine(refusal);
    return { isError: true, content: [{ type: "text", text }] };
  }
}

interface Ran {
  readonly output: object;
  readonly text: string;
}

function run(call: ToolCall, operation: ToolOperation): Promise<Ran> {
  return RUN[operation](call, readArguments(operation, call.args));
}

type Run = (call: ToolCall, fields: Record<string, unknown>) => Promise<Ran>;

/** For each tool, the function that turns its arguments into its reply. */
const RUN: Readonly<Record<ToolOperation, Run>> = {
  spawn: (call, fields) =>
    spawn(call, parse("spawn", { ...fields, ...aliased(call, fields), id: call.request.caller.id })),
  subagent: (call, fields) => subagent(call, parse("subagent", fields)),
  waitChildren: (call, fields) => wait(call, parse("waitChildren", fields)),
  cancel: (call, fields) => cancel(call, parse("cancel", fields)),
  tell: (call, fields) => act(call, "tell", { fields, say: tellReply }),
  // Drops `tree`: the family is always drawn as a tree. `cursor` pages the reply, not the operation.
  family: (call, { tree: _tree, cursor = null, ...fields }) =>
    look(call, "family", { fields, say: (output) => familyReply(output, Date.now(), pageCursor(cursor)) }),
  inspect: (call, fields) => look(call, "inspect", { fields, say: inspectReply }),
  respond: (call, fields) => act(call, "respond", { fields, say: respondReply }),
  escalate: (call, fields) => act(call, "escalate", { fields, say: escalateReply }),
  fire: (call, fields) => act(call, "fire", { fields, say: fireReply }),
  ask: (call, fields) => {
    const input = parse("ask", fields);
    const answer = (capMs: number) => ask(call, "ask", { ...input, capMs });
    return blocked(call, answer, (output, unread) => askReply(output, input, unread));
  },
  planReview: (call, fields) => {
    const input = parse("planReview", fields);
    const answer = (capMs: number) => ask(call, "planReview", { ...input, capMs });
    return blocked(call, answer, planReply);
  },
  search: (call, fields) =>
    look(call, "search", { fields, say: (output, unread) => searchReply(output, unread, Date.now()) }),
  checkpoint: (call, fields) => act(call, "checkpoint", { fields, say: checkpointReply }),
  models: (call, fields) => look(call, "models", { fields, say: modelsReply }),
};

interface Plain<N extends ToolOperation> {
  readonly fields: Record<string, unknown>;
  readonly say: (output: OutputOf<N>, unread: number) => string;
}

/** Runs an operation that changes nothing, and formats its reply. */
async function look<N extends ToolOperation>(call: ToolCall, operation: N, plain: Plain<N>): Promise<Ran> {
  const output = await ask(call, operation, parse(operation, plain.fields));
  return { output: output as object, text: plain.say(output, await unread(call)) };
}

/** Runs an operation that changes something, and logs who asked for it. */
async function act<N extends ToolOperation>(call: ToolCall, operation: N, plain: Plain<N>): Promise<Ran> {
  const ran = await look(call, operation, plain);
  noteDone(call);
  return ran;
}

function ask<N extends ToolOperation>(call: ToolCall, operation: N, input: InputOf<N>): Promise<OutputOf<N>> {
  const [who, how] = [caller(call), asked(call)];
  return (call.operations[operation] as Ask<N>)(who, input, how);
}

type Ask<N extends ToolOperation> = (
  caller: CallerContext,
  input: InputOf<N>,
  call: Call,
) => Promise<OutputOf<N>>;

function parse<N extends ToolOperation>(operation: N, fields: object): InputOf<N> {
  const names = new Map([...parametersOf(operation)].map(([name, field]) => [field, name]));
  return parseInput(OPERATIONS[operation].input, fields, {
    nameOf: (field) => names.get(field) ?? field,
  }) as InputOf<N>;
}

/** Makes a child of `create_session` inherit nothing. */
function aliased(call: ToolCall, { inherit, profile }: Record<string, unknown>): { inherit?: "none" } {
  if (!isAlias(call.tool)) return {};
  if (profile === undefined) {
    throw new Refusal("invalid_input", "session_type is missing; list_models lists the profiles there are.");
  }
  if (inherit === undefined || inherit === "none") return { inherit: "none" };
  throw new Refusal("invalid_input", "A child of create_session inherits nothing; use spawn_session.");
}

function pageCursor(cursor: unknown): string | null {
  return cursor === null ? null : String(cursor);
}

async function spawn(call: ToolCall, input: InputOf<"spawn">): Promise<Ran> {
  const output = await ask(call, "spawn", input);
  const lost = (): Promise<void> => call.gate.spawnReplyLost(caller(call), output.session.id);
  if (call.signal.aborted) await lost();
  else call.request.onLost(lost);
  noteDone(call);
  const { isWakeable } = call;
  return { output, text: spawnReply(output, { unread: await unread(call), now: Date.now(), isWakeable }) };
}

async function cancel(call: ToolCall, input: InputOf<"cancel">): Promise<Ran> {
  const output = await ask(call, "cancel", input);
  await keep(call, output.taken);
  noteDone(call);
  return { output, text: cancelReply(output, await unread(call), input.turnOnly) };
}

function subagent(call: ToolCall, input: InputOf<"subagent">): Promise<Ran> {
  const answer = (capMs: number) => ask(call, "subagent", { ...input, capMs });
  const { isWakeable } = call;
  return blocked(call, answer, (output, unread) => subagentReply(output, { unread, isWakeable }));
}

function wait(call: ToolCall, input: InputOf<"waitChildren">): Promise<Ran> {
  const answer = (capMs: number) => ask(call, "waitChildren", { ...input, capMs });
  const { isWakeable } = call;
  const more = { isSourceForm: input.sourceForm, isWakeable, note: raisedNote(input) };
  return blocked(call, answer, (output, unread) => waitReply(output, { unread, ...more }));
}

/** Waits as long as the client allows, and sends progress. Messages of a lost reply return to the inbox. */
async function blocked<T extends { readonly taken: readonly string[] }>(
  call: ToolCall,
  answer: (capMs: number) => Promise<T>,
  say: (output: T, unread: number) => string,
): Promise<Ran> {
  const stopProgress = startProgress(call);
  let output: T;
  try {
    output = await answer(waitCapMs(call.clientName, call.meta.progressToken !== undefined));
  } catch (error) {
    await keep(call, takenBy(error));
    throw error;
  } finally {
    stopProgress();
  }
  await keep(call, output.taken);
  call.signal.throwIfAborted();
  return { output, text: say(output, await unread(call)) };
}

/** Explains why a timeout was raised: models often pass seconds instead of milliseconds. */
function raisedNote({ sourceForm, timeoutMs = 0 }: InputOf<"waitChildren">): string {
  if (sourceForm || timeoutMs <= 0 || timeoutMs >= WAIT_LEAST_MS) return "";
  return `timeoutMs ${timeoutMs} was raised to ${WAIT_LEAST_MS}: it is in milliseconds.`;
}

async function keep(call: ToolCall, taken: readonly string[]): Promise<void> {
  if (taken.length === 0) return;
  const lost = (): Promise<void> => call.gate.giveBack(caller(call), taken);
  if (call.signal.aborted) await lost();
  else call.request.onLost(lost);
}

/** Returns the ids of messages that a refusal carries. A failed child's callback arrives as a refusal. */
function takenBy(error: unknown): string[] {
  const taken = error instanceof Refusal ? error.details.taken : [];
  return Array.isArray(taken) ? taken.filter((id) => typeof id === "string") : [];
}

function startProgress(call: ToolCall): () => void {
  const { progressToken } = call.meta;
  if (typeof progressToken !== "string" && typeof progressToken !== "number") return () => undefined;
  let progress = 0;
  const timer = setInterval(() => {
    progress += 1;
    call.progress({ progressToken, progress, message: "still waiting" }).catch((error: unknown) => {
      call.log.debug({ err: error }, "could not send progress; the caller has gone");
    });
  }, PROGRESS_MS);
  return () => clearInterval(timer);
}

/** Uses the call id of Claude Code only: no other client gives ids that are unique in a session. */
function asked(call: ToolCall): Call {
  const toolUseId = call.meta["claudecode/toolUseId"];
  return {
    signal: call.signal,
    callId: typeof toolUseId === "string" && toolUseId !== "" ? toolUseId : null,
  };
}

/** Counts unread messages. Returns 0 if that fails, because the operation itself has succeeded. */
async function unread(call: ToolCall): Promise<number> {
  try {
    return await call.gate.unread(caller(call));
  } catch (error) {
    call.log.warn({ err: error }, "could not count unread messages");
    return 0;
  }
}

function caller(call: ToolCall): CallerContext {
  return call.request.caller;
}

function noteDone(call: ToolCall): void {
  const { kind, id } = caller(call);
  call.log.info({ tool: call.tool, by: { kind, id } }, "tool call over MCP");
}

/** Returns the refusal for an error. An abort because the caller has gone is not treated as a bug. */
function refusalFor(call: ToolCall, error: unknown): Refusal {
  if (call.request.ending !== null) return call.request.ending;
  if (call.signal.aborted && !(error instanceof Refusal)) {
    return new Refusal("shutting_down", "The call was cancelled; nothing was taken.");
  }
  return refusalOf(error, call.log);
}

function toolOperation(tool: string): ToolOperation {
  const operation = operationOf(tool);
  if (operation !== null) return operation;
  const [near] = nearest(tool, TOOL_NAMES, 1);
  const hint = near === undefined ? "" : ` Did you mean ${near}?`;
  throw new Refusal("not_found", `There is no such tool.${hint} Allowed: ${TOOL_NAMES.join(", ")}.`);
}
