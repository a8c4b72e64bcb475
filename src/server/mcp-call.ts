import type { CallToolResult, Progress, ProgressToken } from "@modelcontextprotocol/server";
import { OPERATIONS, Refusal } from "../contract/index.ts";
import type { Caller, InputOf, WaitChildrenOutput } from "../contract/index.ts";
import type { Log } from "../log.ts";
import type { Call, Gate, Operations } from "../operations/port.ts";
import { refusalBody, refusalOf } from "./answer.ts";
import type { Exchange } from "./exchange.ts";
import { parseInput } from "./input.ts";
import { readArguments } from "./mcp-arguments.ts";
import { waitCapMs } from "./mcp-client.ts";
import { cancelReply, familyReply, refusalLine, spawnReply, tellReply } from "./mcp-reply.ts";
import { TOOLS, operationOf, parametersOf } from "./mcp-tools.ts";
import type { ToolOperation } from "./mcp-tools.ts";
import { waitReply } from "./mcp-wait.ts";
import { nearest } from "./nearest.ts";

/** One call of a tool, with everything it may touch. */
export interface ToolCall {
  readonly operations: Operations;
  readonly gate: Gate;
  readonly log: Log;
  readonly exchange: Exchange;
  readonly clientName: string | null;
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
  const fields = readArguments(operation, call.args);
  switch (operation) {
    case "spawn":
      return spawn(call, parse("spawn", { ...fields, id: call.exchange.caller.id }));
    case "waitChildren":
      return wait(call, parse("waitChildren", fields));
    case "cancel":
      return cancel(call, parse("cancel", fields));
    case "tell":
      return tell(call, parse("tell", fields));
    case "family":
      return family(call, parse("family", fields));
  }
}

function parse<N extends ToolOperation>(operation: N, fields: object): InputOf<N> {
  const names = new Map([...parametersOf(operation)].map(([name, field]) => [field, name]));
  return parseInput(OPERATIONS[operation].input, fields, {
    nameOf: (field) => names.get(field) ?? field,
  }) as InputOf<N>;
}

async function spawn(call: ToolCall, input: InputOf<"spawn">): Promise<Ran> {
  const { caller } = call.exchange;
  const output = await call.operations.spawn(caller, input, asked(call));
  const lost = (): Promise<void> => call.gate.spawnReplyLost(caller, output.session.id);
  if (call.signal.aborted) await lost();
  else call.exchange.onLost(lost);
  noteDone(call);
  return { output, text: spawnReply(output, await unread(call, caller), Date.now()) };
}

async function cancel(call: ToolCall, input: InputOf<"cancel">): Promise<Ran> {
  const output = await call.operations.cancel(call.exchange.caller, input, asked(call));
  await keep(call, output.taken);
  noteDone(call);
  return { output, text: cancelReply(output, await unread(call, call.exchange.caller), input.turnOnly) };
}

async function tell(call: ToolCall, input: InputOf<"tell">): Promise<Ran> {
  const output = await call.operations.tell(call.exchange.caller, input, asked(call));
  noteDone(call);
  return { output, text: tellReply(output, await unread(call, call.exchange.caller)) };
}

async function family(call: ToolCall, input: InputOf<"family">): Promise<Ran> {
  const output = await call.operations.family(call.exchange.caller, input, asked(call));
  return { output, text: familyReply(output, Date.now()) };
}

/** A reply that carries results and does not arrive gives them back, at once where that is known at once. */
async function wait(call: ToolCall, input: InputOf<"waitChildren">): Promise<Ran> {
  const { caller } = call.exchange;
  const capMs = waitCapMs(call.clientName, call.meta.progressToken !== undefined);
  const stopProgress = startProgress(call);
  let output: WaitChildrenOutput;
  try {
    output = await call.operations.waitChildren(caller, { ...input, capMs }, asked(call));
  } catch (error) {
    await keep(call, takenBy(error));
    throw error;
  } finally {
    stopProgress();
  }
  await keep(call, output.taken);
  call.signal.throwIfAborted();
  const options = {
    unread: await unread(call, caller),
    isSourceForm: input.sourceForm,
    note: raisedNote(input),
  };
  return { output, text: waitReply(output, options) };
}

/** The operation raises a time that is too short; the caller is told, because models pass seconds. */
function raisedNote({ sourceForm, timeoutMs = 0 }: InputOf<"waitChildren">): string {
  if (sourceForm || timeoutMs <= 0 || timeoutMs >= WAIT_LEAST_MS) return "";
  return `timeoutMs ${timeoutMs} was raised to ${WAIT_LEAST_MS}: it is in milliseconds.`;
}

async function keep(call: ToolCall, taken: readonly string[]): Promise<void> {
  if (taken.length === 0) return;
  const lost = (): Promise<void> => call.gate.giveBack(call.exchange.caller, taken);
  if (call.signal.aborted) await lost();
  else call.exchange.onLost(lost);
}

/** A failed child is told as a refusal; it takes the callback as a result does. */
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
      call.log.debug({ err: error }, "progress could not be told; the caller has gone");
    });
  }, PROGRESS_MS);
  return () => clearInterval(timer);
}

/** Only Claude Code gives a call an id that no other call of the session can have. */
function asked(call: ToolCall): Call {
  const toolUseId = call.meta["claudecode/toolUseId"];
  return {
    signal: call.signal,
    callId: typeof toolUseId === "string" && toolUseId !== "" ? toolUseId : null,
  };
}

/** What was done stays done when the count cannot be read. */
async function unread(call: ToolCall, caller: Caller): Promise<number> {
  try {
    return await call.gate.unread(caller);
  } catch (error) {
    call.log.warn({ err: error }, "unread messages could not be counted");
    return 0;
  }
}

function noteDone(call: ToolCall): void {
  const { kind, id } = call.exchange.caller;
  call.log.info({ tool: call.tool, by: { kind, id } }, "asked over MCP");
}

/** A caller that has gone reads nothing, and its abort is no bug. */
function refusalFor(call: ToolCall, error: unknown): Refusal {
  if (call.exchange.ending !== null) return call.exchange.ending;
  if (call.signal.aborted && !(error instanceof Refusal)) {
    return new Refusal("shutting_down", "The call was cancelled; nothing was taken.");
  }
  return refusalOf(error, call.log);
}

function toolOperation(tool: string): ToolOperation {
  const operation = operationOf(tool);
  if (operation !== null) return operation;
  const names = TOOLS.map(({ name }) => name);
  const near = nearest(tool, names);
  const hint = near === null ? "" : ` Did you mean ${near}?`;
  throw new Refusal("not_found", `There is no such tool.${hint} Allowed: ${names.join(", ")}.`);
}
