import { asError } from "../../system/error.ts";
import { boundedText } from "../../text/fence.ts";

/** The sim agent's script language, shared by the sim process and the fake driver. */
export type Step =
  | {
      readonly word: "say" | "think" | "permit" | "review" | "fail" | "run" | "recall" | "compact";
      readonly text: string;
    }
  | { readonly word: "sleep" | "background"; readonly ms: number }
  | { readonly word: "tool"; readonly name: string; readonly input: unknown; readonly as: string | null }
  | { readonly word: "ask"; readonly text: string; readonly options: readonly string[] }
  | { readonly word: "plan"; readonly titles: readonly string[] }
  | { readonly word: "write"; readonly path: string; readonly text: string }
  | { readonly word: "usage"; readonly input: number; readonly output: number; readonly usd: number }
  | { readonly word: "limit"; readonly seconds: number }
  | { readonly word: "flood"; readonly megabytes: number }
  | { readonly word: "hang" }
  | { readonly word: "crash" | "deaf" | "half" }
  | { readonly word: "unknown"; readonly problem: string };

/**
 * Translates a prompt into steps. If its first line begins with `sim>`, all lines that begin with `sim>` are
 * the script. A prompt that begins with a trigger's marker is acknowledged. Any other prompt is echoed.
 */
export function readPrompt(text: string): readonly Step[] {
  const lines = withoutPromptContext(text).split("\n");
  if (lines[0]?.startsWith("<!-- trigger:")) {
    const first = withoutMarks(lines).find((line) => line.trim() !== "") ?? "";
    return [{ word: "say", text: `sim: noted ${boundedText(first.trim(), NOTE_LENGTH)}` }];
  }
  const body = withoutMarks(lines).join("\n").trim();
  if (!body.startsWith(PREFIX)) return [{ word: "say", text: `sim: ${boundedText(body, ECHO_LENGTH)}` }];
  return body
    .split("\n")
    .filter((line) => line.startsWith(PREFIX))
    .map((line) => readStep(line.slice(PREFIX.length).trim()));
}

/** Returns the context of earlier conversations that a prompt carries; empty if there is none. */
export function promptContextIn(text: string): string {
  const at = OPENING.exec(text)?.index;
  return at === undefined ? "" : text.slice(at);
}

/** Replaces `${name.path}` with the value bound to the name; leaves unbound references unchanged. */
function fillIn(text: string, bound: ReadonlyMap<string, unknown>): string {
  return text.replace(REFERENCE, (whole, name: string, path: string | undefined) => {
    const value = lookUp(bound, name, path);
    if (value === undefined) return whole;
    return typeof value === "string" ? value : JSON.stringify(value);
  });
}

/** Like `fillIn`, inside a JSON value; a string that is a single reference becomes the value itself. */
export function fillInValue(value: unknown, bound: ReadonlyMap<string, unknown>): unknown {
  if (typeof value === "string") {
    const whole = WHOLE_REFERENCE.exec(value);
    const found = whole ? lookUp(bound, whole[1] as string, whole[2]) : undefined;
    return found === undefined ? fillIn(value, bound) : found;
  }
  if (Array.isArray(value)) return value.map((item) => fillInValue(item, bound));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillInValue(item, bound)]));
}

/** Returns the value to bind: the reply parsed as JSON, else its first line parsed as JSON, else its text. */
export function replyValue(text: string): unknown {
  for (const candidate of [text, text.split("\n")[0] ?? ""]) {
    const value = parseObject(candidate);
    if (value !== undefined) return value;
  }
  return { text };
}

const PREFIX = "sim>";
const NOTE_LENGTH = 120;
const ECHO_LENGTH = 2_000;
const MARK = /^<!-- (message|trigger):\S+ -->$/;
const OPENING = /^## (?:Inherited from Parent Session|From Your Own Earlier Conversation)$/m;
const REFERENCE = /\$\{(\w+)((?:\.\w+)*)\}/g;
const WHOLE_REFERENCE = /^\$\{(\w+)((?:\.\w+)*)\}$/;

function withoutPromptContext(text: string): string {
  const context = promptContextIn(text);
  return context === "" ? text : text.slice(0, -context.length);
}

function withoutMarks(lines: readonly string[]): string[] {
  return lines.filter((line) => !MARK.test(line.trim()));
}

function readStep(line: string): Step {
  const [, word = "", rest = ""] = /^(\S+)\s*(.*)$/.exec(line) ?? [];
  return (
    READERS[word]?.(rest) ?? { word: "unknown", problem: `sim does not know "${boundedText(line, 80)}"` }
  );
}

const READERS: Readonly<Record<string, (rest: string) => Step | null>> = {
  say: (text) => ({ word: "say", text }),
  think: (text) => ({ word: "think", text }),
  permit: (text) => ({ word: "permit", text }),
  review: (text) => ({ word: "review", text }),
  fail: (text) => ({ word: "fail", text: text || "failed as told" }),
  run: (text) => ({ word: "run", text }),
  recall: (text) => (text === "" ? null : { word: "recall", text }),
  compact: (text) => (text === "" ? null : { word: "compact", text }),
  sleep: (rest) => withNumber(rest, (ms) => ({ word: "sleep", ms })),
  background: (rest) => withNumber(rest, (ms) => ({ word: "background", ms })),
  limit: (rest) => withNumber(rest, (seconds) => ({ word: "limit", seconds })),
  flood: (rest) => withNumber(rest, (megabytes) => ({ word: "flood", megabytes })),
  tool: readTool,
  ask: (rest) => {
    const [text = "", ...options] = rest.split("|").map((part) => part.trim());
    return { word: "ask", text, options };
  },
  plan: (rest) => ({ word: "plan", titles: rest.split(";").map((title) => title.trim()) }),
  write: (rest) => {
    const [, path = "", text = ""] = /^(\S+)\s?(.*)$/.exec(rest) ?? [];
    return path === "" ? null : { word: "write", path, text };
  },
  usage: (rest) => {
    const [input = 0, output = 0, usd = 0] = rest.split(/\s+/).map(Number);
    return [input, output, usd].every(Number.isFinite) ? { word: "usage", input, output, usd } : null;
  },
  crash: () => ({ word: "crash" }),
  hang: () => ({ word: "hang" }),
  deaf: () => ({ word: "deaf" }),
  "ignore-cancel": () => ({ word: "deaf" }),
  half: () => ({ word: "half" }),
};

function withNumber(rest: string, make: (value: number) => Step): Step | null {
  const value = Number(rest);
  return rest !== "" && Number.isFinite(value) && value >= 0 ? make(value) : null;
}

function readTool(rest: string): Step | null {
  const [, name, body = "", as = null] = /^(\S+)\s*(.*?)(?:\s+as\s+(\w+))?\s*$/.exec(rest) ?? [];
  if (name === undefined) return null;
  const input = body === "" ? {} : parseObject(body);
  if (input === undefined)
    return { word: "unknown", problem: `the input of tool ${name} is not a JSON object` };
  return { word: "tool", name, input, as };
}

function parseObject(text: string): unknown {
  if (!text.trimStart().startsWith("{")) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function lookUp(bound: ReadonlyMap<string, unknown>, name: string, path: string | undefined): unknown {
  let value = bound.get(name);
  for (const key of (path ?? "").split(".").filter(Boolean)) {
    value = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined;
  }
  return value;
}

/** Performs the steps of a script. The sim process does so over ACP, the fake driver by direct calls. */
export interface Stage {
  say(text: string): void;
  think(text: string): void;
  plan(titles: readonly string[]): void;
  /** Whether the earlier conversation, or the context that the prompt carries, contains this text. */
  recalls(text: string): boolean;
  compact(summary: string): void;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  background(ms: number): void;
  run(command: string, signal: AbortSignal): Promise<void>;
  write(path: string, text: string): Promise<void>;
  tool(name: string, input: unknown, signal: AbortSignal): Promise<{ text: string; ok: boolean }>;
  /** Resolves to the answer, or null if the question was declined. */
  ask(text: string, options: readonly string[], signal: AbortSignal): Promise<string | null>;
  permit(text: string, signal: AbortSignal): Promise<boolean>;
  /** Asks for permission to leave planning mode and carry out this plan. */
  review(plan: string, signal: AbortSignal): Promise<boolean>;
  /** Reports what the prompt has used so far, at the end of a model call. */
  usage(used: Used, signal: AbortSignal): Promise<void>;
  /** Performs a fault that only a real process can have, such as a crash. */
  misbehave(step: Extract<Step, { word: "crash" | "deaf" | "half" | "flood" }>): Promise<void>;
}

export interface Play {
  readonly text: string;
  readonly stage: Stage;
  readonly signal: AbortSignal;
  /** Messages steered into this turn; each is answered before the next step. */
  readonly steered: Steered;
  /** The number of steps that an earlier process did. `bound` has the variables that those steps bound. */
  readonly done?: number;
  readonly bound?: Map<string, unknown>;
  readonly onSteered?: () => void;
  /** Called after each step of the prompt, but not after the steps of a steered message. */
  readonly onStep?: (done: number, bound: { as: string | null; value: unknown }) => void;
}

export interface Used {
  readonly input: number;
  readonly output: number;
  readonly usd: number;
}

export interface PlayEnd {
  readonly stopReason: "end_turn" | "cancelled" | "error";
  readonly error: string | null;
  readonly limitSeconds: number | null;
  readonly usage: Used;
}

/** Messages steered into a turn. A hanging turn can wait for the next message. */
export class Steered {
  readonly #texts: string[] = [];
  #wake: (() => void) | null = null;

  add(text: string): void {
    this.#texts.push(text);
    this.#wake?.();
  }

  take(): string | undefined {
    return this.#texts.shift();
  }

  arrival(): Promise<void> {
    if (this.#texts.length > 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** Never rejects: an error of the stage becomes the prompt's error. */
export async function play(request: Play): Promise<PlayEnd> {
  const state: State = {
    ...request,
    bound: request.bound ?? new Map(),
    used: { input: 0, output: 0, usd: 0 },
    stopped: null,
  };
  try {
    await playPrompt(state);
    await playSteered(state);
  } catch (error) {
    if (!request.signal.aborted) state.stopped ??= { error: asError(error).message, limitSeconds: null };
  }
  const ended = { usage: state.used, error: null, limitSeconds: null };
  if (request.signal.aborted) return { ...ended, stopReason: "cancelled" };
  return state.stopped === null
    ? { ...ended, stopReason: "end_turn" }
    : { ...ended, ...state.stopped, stopReason: "error" };
}

interface State extends Play {
  readonly bound: Map<string, unknown>;
  readonly used: { input: number; output: number; usd: number };
  stopped: { error: string; limitSeconds: number | null } | null;
}

async function playPrompt(state: State): Promise<void> {
  const steps = readPrompt(state.text);
  for (let at = state.done ?? 0; at < steps.length; at += 1) {
    if (state.signal.aborted || state.stopped !== null) return;
    const step = steps[at]!;
    await playStep(state, step);
    const isLimit = step.word === "limit";
    if (state.signal.aborted || (state.stopped !== null && !isLimit)) return;
    const as = step.word === "tool" ? step.as : null;
    state.onStep?.(at + 1, { as, value: as === null ? null : state.bound.get(as) });
    // A usage limit ends this prompt. A later prompt continues with the next step.
    if (isLimit) return;
    await playSteered(state);
  }
}

async function playText(state: State, text: string): Promise<void> {
  for (const step of readPrompt(text)) {
    if (state.signal.aborted || state.stopped !== null) return;
    await playStep(state, step);
    await playSteered(state);
  }
}

async function playSteered(state: State): Promise<void> {
  for (let text = state.steered.take(); text !== undefined; text = state.steered.take()) {
    await playText(state, text);
    if (!state.signal.aborted) state.onSteered?.();
  }
}

async function playStep(state: State, step: Step): Promise<void> {
  const { stage, signal } = state;
  const filled = (text: string): string => fillIn(text, state.bound);
  switch (step.word) {
    case "say":
      return stage.say(filled(step.text));
    case "think":
      return stage.think(filled(step.text));
    case "plan":
      return stage.plan(step.titles.map(filled));
    case "recall": {
      const what = filled(step.text);
      return stage.say(stage.recalls(what) ? `sim: recalls ${what}` : `sim: does not recall ${what}`);
    }
    case "compact":
      return stage.compact(filled(step.text));
    case "sleep":
      return stage.sleep(step.ms, signal);
    case "background":
      return stage.background(step.ms);
    case "run":
      return stage.run(filled(step.text), signal);
    case "write":
      return stage.write(filled(step.path), filled(step.text));
    case "tool":
      return playTool(state, step);
    case "ask": {
      const answer = await stage.ask(filled(step.text), step.options.map(filled), signal);
      return stage.say(answer === null ? "sim: no answer" : `sim: answered ${answer}`);
    }
    case "review": {
      const isApproved = await stage.review(filled(step.text), signal);
      return stage.say(isApproved ? "sim: plan approved" : "sim: keeps planning");
    }
    case "permit":
      return stage.say((await stage.permit(filled(step.text), signal)) ? "sim: allowed" : "sim: denied");
    case "hang":
      return hang(state);
    default:
      return playEnding(state, step);
  }
}

async function playEnding(state: State, step: Step): Promise<void> {
  switch (step.word) {
    case "usage":
      state.used.input += step.input;
      state.used.output += step.output;
      state.used.usd += step.usd;
      return state.stage.usage(state.used, state.signal);
    case "limit":
      state.stopped = { error: `usage limit, over in ${step.seconds} s`, limitSeconds: step.seconds };
      return;
    case "fail":
      state.stopped = { error: fillIn(step.text, state.bound), limitSeconds: null };
      return;
    case "unknown":
      state.stopped = { error: step.problem, limitSeconds: null };
      return;
    case "crash":
    case "deaf":
    case "half":
    case "flood":
      return state.stage.misbehave(step);
    default:
      throw new Error(`no such step: ${step.word}`);
  }
}

async function playTool(state: State, step: Extract<Step, { word: "tool" }>): Promise<void> {
  const reply = await state.stage.tool(step.name, fillInValue(step.input, state.bound), state.signal);
  if (step.as !== null) state.bound.set(step.as, replyValue(reply.text));
  state.stage.say(reply.text);
}

/** Answers steered messages until the turn is cancelled. */
async function hang(state: State): Promise<void> {
  const cancelled = new Promise<void>((resolve) => {
    state.signal.addEventListener("abort", () => resolve(), { once: true });
  });
  while (!state.signal.aborted && state.stopped === null) {
    await Promise.race([cancelled, state.steered.arrival()]);
    if (!state.signal.aborted) await playSteered(state);
  }
}
