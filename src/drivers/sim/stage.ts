import { sendSignal } from "../../system/proc.ts";
import { type ChildProcess, spawn } from "node:child_process";
import { constants, existsSync, realpathSync } from "node:fs";
import { open } from "node:fs/promises";
import { resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { realPathOf } from "../../system/folder.ts";
import type { Journal } from "./journal.ts";
import type { McpClient } from "./mcp-client.ts";
import { type Mode, verdict } from "./mode.ts";
import type { Stage, Used } from "./script.ts";
import type { Wire } from "./wire.ts";

export interface StageOptions {
  readonly sessionId: string;
  readonly cwd: string;
  readonly journal: Journal;
  readonly mcp: McpClient | null;
  readonly mode: Mode;
  readonly wire: Wire;
  /** The cost of the prompts before this one. */
  readonly costBefore: number;
  /** Returns the conversation before this prompt, and the context that the prompt carries. */
  readonly memory: () => string;
  /** Makes the process ignore cancels from now on, so that only a kill ends it. */
  readonly onDeaf: () => void;
}

/** Plays scripts as a real agent would: ACP updates and requests, real files, real processes. */
export class AcpStage implements Stage {
  readonly #options: StageOptions;

  constructor(options: StageOptions) {
    this.#options = options;
  }

  say(text: string): void {
    this.#options.journal.append({ kind: "agent", text });
    this.#chunk("agent_message_chunk", text);
  }

  think(text: string): void {
    this.#options.journal.append({ kind: "thought", text });
    this.#chunk("agent_thought_chunk", text);
  }

  plan(titles: readonly string[]): void {
    const entries = titles.map((content) => ({ content, priority: "medium", status: "pending" }));
    this.#update({ sessionUpdate: "plan", entries });
  }

  recalls(text: string): boolean {
    return this.#options.memory().includes(text);
  }

  compact(summary: string): void {
    const compactionId = crypto.randomUUID();
    const content = [{ type: "text", text: summary }];
    this.#update({ sessionUpdate: "compaction_update", compactionId, status: "in_progress" });
    this.#update({ sessionUpdate: "compaction_update", compactionId, status: "completed", summary: content });
  }

  /** Runs `sleep` in its own process session, as every vendor does with shell commands. */
  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    await finish(spawn("sleep", [String(ms / 1000)], { detached: true, stdio: "ignore" }), signal);
  }

  background(ms: number): void {
    spawn("sleep", [String(ms / 1000)], { detached: true, stdio: "ignore" }).unref();
  }

  async run(command: string, signal: AbortSignal): Promise<void> {
    const toolCallId = crypto.randomUUID();
    const rawInput = { command };
    const call = { title: command, name: "shell", kind: "execute", status: "in_progress", rawInput };
    this.#update({ sessionUpdate: "tool_call", toolCallId, ...call });
    if (!(await this.#may(toolCallId, { tool: "Bash", what: command }))) return;
    const child = spawn("/bin/sh", ["-c", command], {
      cwd: this.#options.cwd,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream
        .setEncoding("utf8")
        .on("data", (text: string) => (output = (output + text).slice(-OUTPUT_LENGTH)));
    }
    const exit = await finish(child, signal);
    this.#result(toolCallId, { ok: exit === 0, text: output, rawOutput: { output, metadata: { exit } } });
  }

  async write(path: string, text: string): Promise<void> {
    const toolCallId = crypto.randomUUID();
    const target = realPathOf(resolve(this.#options.cwd, path));
    const call = { title: `Write ${path}`, name: "write", kind: "edit", status: "in_progress" };
    const locations = [{ path: target }];
    this.#update({ sessionUpdate: "tool_call", toolCallId, ...call, locations, rawInput: { path, text } });
    if (!(await this.#may(toolCallId, { tool: "Write", what: `Write ${path}`, path: target }))) return;
    const newText = `${text}\n`;
    const oldText = await replaceText(target, newText);
    const content = [{ type: "diff", path: target, oldText, newText }];
    this.#update({ sessionUpdate: "tool_call_update", toolCallId, status: "completed", content });
  }

  async tool(name: string, input: unknown, signal: AbortSignal): Promise<{ text: string; ok: boolean }> {
    const callId = crypto.randomUUID();
    const title = `mcp__kinfold__${name}`;
    const call = { title, name: title, kind: "other", status: "in_progress", rawInput: input };
    this.#update({ sessionUpdate: "tool_call", toolCallId: callId, ...call });
    const reply = this.#options.mcp
      ? await this.#options.mcp.call(name, input, signal)
      : { text: `tool ${name} failed: no server was given`, ok: false };
    this.#options.journal.append({ kind: "tool", callId, name: title, input, ...reply });
    this.#result(callId, { ...reply, rawOutput: reply.text });
    return reply;
  }

  async ask(text: string, options: readonly string[]): Promise<string | null> {
    const answer = { type: "string", ...(options.length > 0 ? { enum: options } : {}) };
    const reply = (await this.#options.wire.request("elicitation/create", {
      mode: "form",
      sessionId: this.#options.sessionId,
      message: text,
      requestedSchema: { type: "object", properties: { answer }, required: ["answer"] },
    })) as { action: string; content?: { answer?: unknown } };
    return reply.action === "accept" ? String(reply.content?.answer ?? "") : null;
  }

  permit(text: string): Promise<boolean> {
    return this.#permit({ title: text, name: "shell", kind: "execute", rawInput: { command: text } });
  }

  review(plan: string): Promise<boolean> {
    return this.#permit({
      title: "Ready to code?",
      name: "ExitPlanMode",
      kind: "switch_mode",
      rawInput: { plan },
    });
  }

  async #permit(call: object): Promise<boolean> {
    const toolCall = { toolCallId: crypto.randomUUID(), ...call };
    const options = [
      { optionId: "yes", name: "Allow", kind: "allow_once" },
      { optionId: "no", name: "Reject", kind: "reject_once" },
    ];
    const params = { sessionId: this.#options.sessionId, toolCall, options };
    const reply = (await this.#options.wire.request("session/request_permission", params)) as {
      outcome: { outcome: string; optionId?: string };
    };
    return reply.outcome.optionId === "yes";
  }

  /** The cost is the session's total, as in ACP. The prompt's tokens are in `_meta`, as with some vendors. */
  async usage(used: Used, signal: AbortSignal): Promise<void> {
    const { input: inputTokens, output: outputTokens } = used;
    this.#update({
      sessionUpdate: "usage_update",
      used: inputTokens + outputTokens,
      size: CONTEXT_TOKENS,
      cost: { amount: this.#options.costBefore + used.usd, currency: "USD" },
      _meta: { usage: { inputTokens, outputTokens } },
    });
    // Takes time, as a model call does, so that the daemon can stop the turn when its budget is used up.
    await pause(CALL_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
  }

  async misbehave(step: Parameters<Stage["misbehave"]>[0]): Promise<void> {
    switch (step.word) {
      case "crash":
        process.stderr.write("sim: crashed as told\n");
        process.exit(1);
      case "half":
        process.stdout.write('{"jsonrpc":"2.0","method":"session/upd', () => process.exit(0));
        return new Promise(() => {});
      case "flood":
        return flood(step.megabytes);
      default:
        return this.#options.onDeaf();
    }
  }

  /**
   * Whether the action is allowed. Asks first if the mode requires it. If the action is not allowed, reports
   * the tool call as failed.
   */
  async #may(
    toolCallId: string,
    action: { readonly tool: "Write" | "Bash"; readonly what: string; readonly path?: string },
  ): Promise<boolean> {
    const { mode, cwd } = this.#options;
    const decided = verdict(mode, { ...action, cwd });
    if (decided === "do" || (decided === "ask" && (await this.permit(action.what)))) return true;
    const text = decided === "ask" ? "denied" : `${action.tool} is not allowed in mode ${mode.permission}`;
    this.#result(toolCallId, { ok: false, text, rawOutput: text });
    return false;
  }

  #chunk(sessionUpdate: string, text: string): void {
    this.#update({ sessionUpdate, messageId: crypto.randomUUID(), content: { type: "text", text } });
  }

  #result(toolCallId: string, result: { ok: boolean; text: string; rawOutput: unknown }): void {
    const content = [{ type: "content", content: { type: "text", text: result.text } }];
    const status = result.ok ? "completed" : "failed";
    const { rawOutput } = result;
    this.#update({ sessionUpdate: "tool_call_update", toolCallId, status, content, rawOutput });
  }

  #update(update: object): void {
    this.#options.wire.notify("session/update", { sessionId: this.#options.sessionId, update });
  }
}

const OUTPUT_LENGTH = 65_536;
const CONTEXT_TOKENS = 200_000;
const CALL_MS = 50;

/**
 * Writes to the real path that was checked, and returns the old text. Fails if a link has replaced the file
 * or a folder above it since the check.
 */
async function replaceText(target: string, text: string): Promise<string | null> {
  const existed = existsSync(target);
  const file = await open(target, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW);
  try {
    if (realpathSync(target) !== target) throw new Error(`${target} was replaced by a link`);
    const oldText = existed ? await file.readFile("utf8") : null;
    await file.truncate(0);
    await file.write(text, 0);
    return oldText;
  } finally {
    await file.close();
  }
}

/** Resolves to the exit code, or null after a signal. A cancel kills the child's process group. */
async function finish(child: ChildProcess, signal: AbortSignal): Promise<number | null> {
  const cut = (): void => {
    if (child.pid !== undefined) sendSignal(-child.pid, "SIGKILL");
  };
  signal.addEventListener("abort", cut, { once: true });
  const code = await new Promise<number | null>((done, fail) => {
    child.once("exit", done);
    child.once("error", fail);
  });
  signal.removeEventListener("abort", cut);
  return code;
}

/** Writes one very long line; waits until each megabyte has been written. */
async function flood(megabytes: number): Promise<void> {
  const piece = "x".repeat(1024 * 1024);
  for (let count = 0; count < megabytes; count += 1) {
    await new Promise((done) => process.stdout.write(piece, done));
  }
  await new Promise((done) => process.stdout.write("\n", done));
}
