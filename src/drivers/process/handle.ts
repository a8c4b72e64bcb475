import type { AgentHandle, PromptEnd, StopReport } from "../port.ts";
import type { AgentProcess } from "./process.ts";

export type HandleOptions = Pick<AgentHandle, "agentSessionId" | "agentVersion" | "model" | "replay"> & {
  readonly process: AgentProcess;
};

/** The part of a handle that depends on the agent's process only, not on its protocol. */
export abstract class ProcessHandle implements AgentHandle {
  readonly agentSessionId: string;
  readonly agentVersion: string | null;
  readonly model: string | null;
  readonly replay: AgentHandle["replay"];
  readonly exited: AgentHandle["exited"];
  protected readonly process: AgentProcess;

  constructor({ process, agentSessionId, agentVersion, model, replay }: HandleOptions) {
    this.agentSessionId = agentSessionId;
    this.agentVersion = agentVersion;
    this.model = model;
    this.replay = replay;
    this.exited = process.exited;
    this.process = process;
  }

  abstract prompt(text: string): Promise<PromptEnd>;
  abstract steer(text: string): ReturnType<AgentHandle["steer"]>;
  abstract cancel(): void;
  /** Resolves when the running prompt ends; null if none is running. */
  protected abstract running(): Promise<PromptEnd> | null;

  async stop(graceMs: number): Promise<StopReport> {
    if (graceMs > 0) await this.#endOrderly(graceMs);
    return this.process.stop();
  }

  background(since: number): Promise<boolean> {
    return this.process.background(since);
  }

  descendants(): ReturnType<AgentHandle["descendants"]> {
    return this.process.descendants();
  }

  /** Cancels the prompt, closes the input, then sends a signal. Each step gets a share of the grace time. */
  async #endOrderly(graceMs: number): Promise<void> {
    const running = this.running();
    if (running !== null) {
      this.cancel();
      await within(running, graceMs / 2);
    }
    await this.process.endInput();
    if (await within(this.exited, graceMs / 4)) return;
    await this.process.terminate();
    await within(this.exited, graceMs / 4);
  }
}

/** Whether the promise settles within `ms`. Time in which the machine sleeps does not count. */
export async function within(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const limit = Promise.withResolvers<boolean>();
  const beatMs = Math.max(1, Math.min(BEAT_MS, ms));
  let leftMs = ms;
  const timer = setInterval(() => {
    leftMs -= beatMs;
    if (leftMs <= 0) limit.resolve(false);
  }, beatMs);
  const settled = promise.then(
    () => true,
    () => true,
  );
  const inTime = await Promise.race([settled, limit.promise]);
  clearInterval(timer);
  return inTime;
}

const BEAT_MS = 250;
