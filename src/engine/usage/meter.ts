import type { Usage } from "../../contract/index.ts";
import type { AgentHandle, AgentUpdate } from "../../drivers/port.ts";
import { forkOf } from "../turn/first-prompt.ts";
import type { AgentSlot, Runtime } from "../agent/slot.ts";
import type { Recorder } from "../record/recorder.ts";
import { meter } from "./reservation.ts";
import { NO_USAGE } from "../../contract/no-usage.ts";

/** Interval between reads while no updates come. */
const LOOK_MS = 500;

/**
 * Measures the usage of one running turn from its agent's session file. Reads the file after each update, one
 * read at a time. Then `meter` stops the turn if its budget is used up.
 */
export class UsageMeter {
  /** Whether the file has been read at least once in this turn. */
  hasRead = false;
  readonly #runtime: Runtime;
  readonly #slot: AgentSlot;
  readonly #recorder: Recorder;
  readonly #before: Usage;
  #timer: NodeJS.Timeout | null = null;
  #looking: Promise<void> | null = null;
  #again = false;
  #isOver = false;

  private constructor(runtime: Runtime, slot: AgentSlot, at: { recorder: Recorder; before: Usage }) {
    this.#runtime = runtime;
    this.#slot = slot;
    this.#recorder = at.recorder;
    this.#before = at.before;
  }

  /** Must be called before the prompt is sent. Returns null if the agent writes no usable session file. */
  static async begin(runtime: Runtime, slot: AgentSlot, recorder: Recorder): Promise<UsageMeter | null> {
    const { agent } = slot;
    if (agent === null) return null;
    if (!runtime.deps.usageFiles.covers(slot.session.agent)) return null;
    const before = await usedBefore(runtime, slot, agent);
    return before === null ? null : new UsageMeter(runtime, slot, { recorder, before });
  }

  /** Starts reading, just before the prompt is sent; `end` stops it. */
  watch(): void {
    this.#timer = setInterval(() => this.look(), LOOK_MS);
    this.#timer.unref();
  }

  /** An update follows a model call, so the file may have new usage. */
  onUpdate(update: AgentUpdate): void {
    if (update.kind !== "fragment" && update.kind !== "usage") this.look();
  }

  look(): void {
    this.#again = true;
    if (this.#isOver) return;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
  }

  /** Reads the file for the last time, to get the turn's full usage. */
  async end(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.look();
    this.#isOver = true;
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { deps } = this.#runtime;
    const id = this.#slot.agent?.agentSessionId ?? this.#slot.session.agentSessionId;
    while (this.#again && id !== null) {
      this.#again = false;
      const total = await deps.usageFiles.total(this.#slot.session.agent, id);
      if (total === null) continue;
      this.hasRead = true;
      this.#recorder.metered(less(total, this.#before));
      if (this.#slot.isIn(this.#recorder)) meter(this.#runtime, this.#slot);
    }
  }
}

/** Returns the usage before this turn: zero for a new session of the agent; null if it cannot be read. */
async function usedBefore(runtime: Runtime, slot: AgentSlot, agent: AgentHandle): Promise<Usage | null> {
  const { usageFiles } = runtime.deps;
  const { agentSessionId, replay } = agent;
  // A new process may write to another file, so the position in the old file is forgotten.
  const wasPrompted = slot.wasPrompted(agent);
  if (!wasPrompted) usageFiles.forget(agentSessionId);
  const isNew = replay === null && !wasPrompted && (await forkOf(runtime.deps, slot.session)) === null;
  return isNew ? NO_USAGE : usageFiles.total(slot.session.agent, agentSessionId);
}

function less(total: Usage, before: Usage): Usage {
  const count = (name: "inputTokens" | "cachedTokens" | "outputTokens"): number =>
    Math.max(0, total[name] - before[name]);
  return {
    inputTokens: count("inputTokens"),
    cachedTokens: count("cachedTokens"),
    outputTokens: count("outputTokens"),
    usd: total.usd === null ? null : Math.max(0, total.usd - (before.usd ?? 0)),
  };
}
