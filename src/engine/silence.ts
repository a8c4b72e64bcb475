import { nextLookMs, silenceReason, silenceWords } from "../domain/silence.ts";
import { raiseSilence, withdrawSilence } from "../kernel/park.ts";
import { oneLine } from "../text/fence.ts";
import type { AgentHandle } from "../drivers/port.ts";
import type { AgentSlot, Runtime } from "./agent/slot.ts";
import type { Recorder } from "./record/recorder.ts";
import { stopAtLimit } from "./usage/reservation.ts";

/** The most silence that one beat can add, so that time when the machine slept does not count. */
const BEAT_MAX_MS = 2_000;

interface Watched {
  /** Number of updates received when the silence began. */
  updates: number;
  silentMs: number;
  lookAtMs: number;
  retrying: Recorder["retrying"];
  isRaised: boolean;
}

/**
 * Detects working agents that send no updates. Reports the silence in their evidence, notifies the parent and
 * the person after `silenceMs`, and stops the turn after `silenceMaxMs`. Only awake time counts.
 */
export class SilenceWatch {
  readonly #runtime: Runtime;
  readonly #watched = new WeakMap<Recorder, Watched>();
  #beatAt = performance.now();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  async beat(): Promise<void> {
    const now = performance.now();
    const sinceMs = Math.min(now - this.#beatAt, BEAT_MAX_MS);
    this.#beatAt = now;
    for (const slot of this.#runtime.slots.values()) {
      const { state } = slot;
      // Starting and stopping have time limits of their own.
      if (state.phase !== "prompting") continue;
      await this.#check(slot, { agent: state.agent, recorder: state.turn, sinceMs });
    }
  }

  async #check(
    slot: AgentSlot,
    at: { agent: AgentHandle; recorder: Recorder; sinceMs: number },
  ): Promise<void> {
    const { recorder } = at;
    const watched = this.#watched.get(recorder);
    // The turn began after the last beat, so its silence is counted from now on.
    if (watched === undefined) {
      this.#watched.set(recorder, this.#fresh(recorder));
      return;
    }
    if (watched.updates !== recorder.recorded) {
      await this.#reset(slot, recorder, watched);
      return;
    }
    watched.silentMs += at.sinceMs;
    const isNews = watched.retrying !== recorder.retrying;
    watched.retrying = recorder.retrying;
    if (watched.silentMs < watched.lookAtMs && !isNews) return;
    const isExcused = await this.#isExcused(slot, at);
    if (!isStillSilent(slot, recorder, watched)) return;
    if (isExcused) {
      await this.#reset(slot, recorder, watched);
      return;
    }
    watched.lookAtMs = nextLookMs(watched.silentMs, this.#limits());
    await this.#report(slot, recorder, watched);
  }

  /** Whether the silence is expected: the agent waits for an answer, or one of its commands is running. */
  async #isExcused(slot: AgentSlot, at: { agent: AgentHandle; recorder: Recorder }): Promise<boolean> {
    const { read } = this.#runtime.deps.store;
    const { turn, openCalls } = at.recorder;
    const row = await read.turns.byId(turn.id);
    if (row === null || row.status !== "running" || row.blocked > 0) return true;
    const open = await read.triggers.open({ sessionId: slot.session.id });
    if (open.some((trigger) => trigger.type !== "session_error")) return true;
    return openCalls.size > 0 && (await at.agent.background(turn.startedAt));
  }

  async #report(slot: AgentSlot, recorder: Recorder, watched: Watched): Promise<void> {
    const { store, config, now } = this.#runtime.deps;
    const { silentMs, retrying } = watched;
    const [lastTool = null] = [...recorder.openCalls.values()].slice(-1);
    const tool = lastTool === null ? null : oneLine(lastTool, 60);
    const reason = silenceWords({ silentMs, tool, retrying });
    const isDue = silentMs >= config.silenceMs && !watched.isRaised;
    const { turn } = recorder;
    await store.write(turn.rootId, slot.lease, async (tx) => {
      const session = await tx.sessions.byId(turn.sessionId);
      const row = await tx.turns.byId(turn.id);
      if (session === null || session.endedAt !== null || row?.status !== "running") return;
      const evidence = { state: "working", reason, confidence: "certain", at: now() } as const;
      await tx.sessions.patch(session.id, { evidence });
      const data = { evidence };
      tx.append({ sessionId: session.id, type: "session.updated", data, at: now() });
      if (isDue) await raiseSilence(tx, session, { error: reason, now: now() });
    });
    if (isDue) watched.isRaised = true;
    const { silenceMaxMs } = config;
    if (silenceMaxMs > 0 && silentMs >= silenceMaxMs && isStillSilent(slot, recorder, watched))
      stopAtLimit(slot, silenceReason(silenceMaxMs), "silence");
  }

  /** Restarts the count of silence, and withdraws a report of it. */
  async #reset(slot: AgentSlot, recorder: Recorder, watched: Watched): Promise<void> {
    const { store, now } = this.#runtime.deps;
    if (watched.isRaised) {
      await store.write(slot.session.rootId, slot.lease, async (tx) => {
        const session = await tx.sessions.byId(slot.session.id);
        if (session !== null) await withdrawSilence(tx, session, now());
      });
    }
    Object.assign(watched, this.#fresh(recorder));
  }

  #limits(): number[] {
    const { silenceMs, silenceMaxMs } = this.#runtime.deps.config;
    return silenceMaxMs > 0 ? [silenceMs, silenceMaxMs] : [silenceMs];
  }

  #fresh(recorder: Recorder): Watched {
    return {
      updates: recorder.recorded,
      silentMs: 0,
      lookAtMs: nextLookMs(0, this.#limits()),
      retrying: recorder.retrying,
      isRaised: false,
    };
  }
}

/** Checks again after a read of the store: the agent may have sent an update, or the turn may have ended. */
function isStillSilent(slot: AgentSlot, recorder: Recorder, watched: Watched): boolean {
  return slot.isIn(recorder) && !recorder.isOver && watched.updates === recorder.recorded;
}
