import type { ToolCallContent, ToolCallUpdate } from "@agentclientprotocol/sdk/unstable";
import type { AgentUpdate } from "../../port.ts";
import { countLines } from "./line-count.ts";
import { type OwnTool, plainOwnTool } from "./own-tool.ts";
import type { FileChange } from "../../../domain/receipt.ts";
import { boundedText } from "../../../text/fence.ts";
import { type Fields, fieldsOf, isFields } from "../../../text/fields.ts";

/** One tool call, merged from its updates so far. */
export interface Call {
  readonly id: string;
  readonly tool: string;
  readonly title: string;
  readonly kind: string;
  readonly input: unknown;
  readonly command: string | null;
  readonly paths: readonly string[];
  readonly ours: boolean;
}

/**
 * Merges an agent's updates about its tool calls. Agents announce a call before they know its input. So a
 * call is passed on only when its input arrives or an update of another kind follows.
 */
export class ToolCalls {
  readonly #open = new Map<string, State>();
  readonly #emit: (update: AgentUpdate) => void;
  readonly #ownTool: OwnTool;

  constructor(emit: (update: AgentUpdate) => void, ownTool: OwnTool = plainOwnTool) {
    this.#emit = emit;
    this.#ownTool = ownTool;
  }

  take(update: ToolCallUpdate): void {
    const state = this.#merge(update);
    const ended = state.status === "completed" || state.status === "failed";
    if (ended || hasInput(state.rawInput) || this.#open.size > HELD_MAX) this.#announce(state);
    if (!ended) return;
    this.#emit(resultOf(state, callOf(state, this.#ownTool)));
    this.#open.delete(state.id);
  }

  /** Returns the call that a permission request is about; the request may have only the call's id. */
  describe(update: ToolCallUpdate): Call {
    const known = this.#open.has(update.toolCallId);
    const state = this.#merge(update);
    if (known) this.#announce(state);
    else this.#open.delete(update.toolCallId);
    return callOf(state, this.#ownTool);
  }

  /** Passes on the calls that still wait for their input, because another update is about to follow. */
  flush(): void {
    for (const state of this.#open.values()) this.#announce(state);
  }

  /** Forgets the calls of a prompt that has ended. Calls still without a result will never get one. */
  clear(): void {
    this.flush();
    this.#open.clear();
  }

  #merge(update: ToolCallUpdate): State {
    const id = update.toolCallId;
    const state = this.#open.get(id) ?? newState(id);
    state.title = update.title ?? state.title;
    state.firstTitle ||= state.title;
    // Keeps the first name, because a later update must not turn the call into a call of another tool.
    state.name ??= metaName(update) ?? update.name ?? null;
    state.isServerCall ||= update["_meta"]?.["is_mcp_tool_call"] === true;
    state.kind = update.kind ?? state.kind;
    state.status = update.status ?? state.status;
    state.content = update.content ?? state.content;
    state.paths = update.locations?.map((location) => location.path) ?? state.paths;
    if (hasInput(update.rawInput)) state.rawInput = update.rawInput;
    if (update.rawOutput !== undefined) state.rawOutput = update.rawOutput;
    readTerminal(state, update["_meta"]);
    this.#open.set(id, state);
    return state;
  }

  #announce(state: State): void {
    if (state.isAnnounced) return;
    state.isAnnounced = true;
    const call = callOf(state, this.#ownTool);
    this.#emit({
      kind: "toolCall",
      callId: call.id,
      tool: call.tool,
      title: call.title,
      input: call.input,
      ...(call.command === null ? {} : { command: call.command }),
      ...(call.paths.length === 0 ? {} : { paths: call.paths }),
    });
  }
}

type State = ReturnType<typeof newState>;

function newState(id: string) {
  return {
    id,
    title: "",
    firstTitle: "",
    name: null as string | null,
    isServerCall: false,
    kind: "other" as string,
    status: "pending" as string,
    content: [] as readonly ToolCallContent[],
    paths: [] as readonly string[],
    rawInput: undefined as unknown,
    rawOutput: undefined as unknown,
    terminal: "",
    exitCode: null as number | null,
    isAnnounced: false,
  };
}

const TEXT_LENGTH = 262_144;
/** With more open calls than this, calls do not wait for input: a large flush would block the event loop. */
const HELD_MAX = 64;

function callOf(state: State, ownTool: OwnTool): Call {
  const input = state.rawInput as Fields | undefined;
  const command = commandOf(input?.["command"]);
  const ours = command === null ? ownTool({ ...state, title: state.firstTitle, input }) : null;
  return {
    id: state.id,
    tool: ours ?? state.name ?? (state.title || state.kind),
    title: ours ?? (state.title || state.name || state.kind),
    kind: state.kind,
    input: ours !== null && isFields(input?.["arguments"]) ? input["arguments"] : (state.rawInput ?? {}),
    command:
      command ?? (state.kind === "execute" && ours === null && input === undefined ? state.title : null),
    paths: state.paths,
    ours: ours !== null,
  };
}

function resultOf(state: State, call: Call): AgentUpdate {
  const ok = state.status === "completed";
  const files = ok ? filesOf(state) : [];
  const isCommand = call.command !== null;
  return {
    kind: "toolResult",
    callId: call.id,
    tool: call.tool,
    text: boundedText(textOf(state), TEXT_LENGTH),
    ok,
    ours: call.ours,
    ...(isCommand ? { command: call.command as string, exitCode: exitCodeOf(state) } : {}),
    ...(files.length === 0 ? {} : { files }),
  };
}

function textOf(state: State): string {
  const texts = state.content.flatMap((part) =>
    part.type === "content" && part.content.type === "text" ? [part.content.text] : [],
  );
  if (texts.length > 0) return texts.join("\n");
  return state.terminal || rawText(state.rawOutput);
}

function rawText(output: unknown): string {
  if (typeof output === "string") return output;
  if (Array.isArray(output)) return output.map(rawText).join("\n");
  if (!isFields(output)) return "";
  for (const key of ["text", "output", "stdout", "content", "result", "error"]) {
    if (output[key] !== undefined && output[key] !== null) return rawText(output[key]);
  }
  return JSON.stringify(output);
}

/** Agents report the exit code in different places, and some not at all. */
function exitCodeOf(state: State): number | null {
  if (state.exitCode !== null) return state.exitCode;
  const output = fieldsOf(state.rawOutput);
  const metadata = fieldsOf(output["metadata"]);
  for (const value of [metadata["exit"], output["exit_code"], output["exitCode"]]) {
    if (typeof value === "number") return value;
  }
  const said = state.status === "failed" ? /^(?:Error: )?Exit code:? (\d+)/.exec(textOf(state)) : null;
  return said ? Number(said[1]) : null;
}

function filesOf(state: State): FileChange[] {
  return state.content.flatMap((part): FileChange[] => {
    if (part.type !== "diff") return [];
    const isNew = part.oldText === null || part.oldText === undefined;
    const status = isNew ? "added" : state.kind === "delete" ? "removed" : "changed";
    return [{ path: part.path, status, ...countLines(part.oldText ?? "", part.newText) }];
  });
}

/** Reads the output and exit code from `_meta`, where Codex puts them because we act as its terminal. */
function readTerminal(state: State, meta: Fields | null | undefined): void {
  const { data } = fieldsOf(meta?.["terminal_output_delta"] ?? meta?.["terminal_output"]);
  if (typeof data === "string") state.terminal = boundedText(state.terminal + data, TEXT_LENGTH);
  const { exit_code: exitCode } = fieldsOf(meta?.["terminal_exit"]);
  if (typeof exitCode === "number") state.exitCode = exitCode;
}

function metaName(update: ToolCallUpdate): string | null {
  const { toolName } = fieldsOf(update["_meta"]?.["claudeCode"]);
  return typeof toolName === "string" ? toolName : null;
}

function commandOf(value: unknown): string | null {
  if (typeof value === "string") return value;
  return Array.isArray(value) ? value.map(String).join(" ") : null;
}

function hasInput(value: unknown): boolean {
  return isFields(value) ? Object.keys(value).length > 0 : value !== undefined && value !== null;
}
