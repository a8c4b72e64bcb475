import type { Agent } from "../../contract/index.ts";
import {
  agentOf,
  effectsOf,
  evolve,
  type LeftProcess,
  type Limit,
  limitOf,
  newSlot,
  type Slot,
  type SlotEffect,
  type SlotEvent,
  turnOf,
} from "../../domain/slot.ts";
import type { AgentUpdate } from "../../drivers/port.ts";
import type { SessionRecord, TurnRecord } from "../../store/port/store.ts";
import type { EngineDeps } from "../deps.ts";
import { Recorder } from "../record/recorder.ts";
import { OpenRequests } from "../request/open-requests.ts";
import type { ProcessLease } from "./process-lease.ts";
import { type AgentStart, type LiveAgent, UNWANTED } from "./start.ts";
import { endProcess, idleLeftMs } from "./stop.ts";

/** What the parts of the runner share. Everything durable is in the store; this is only who is here. */
export interface Runtime {
  readonly deps: EngineDeps;
  /** By session. A slot enters when it is made and leaves when it is gone. */
  readonly slots: Map<string, AgentSlot>;
  /** What each agent can do, as it was last found. */
  agents: ReadonlyMap<string, Agent>;
  /** Looks for sessions that may start. */
  readonly fill: () => void;
  isStopping: boolean;
  /** Nothing is claimed before what was cut has been taken up, or while the node's lease is lost. */
  isHalted: boolean;
}

/** Meters the usage of a running turn from the updates of its agent. */
export interface UpdateMeter {
  heard(update: AgentUpdate): void;
}

/**
 * A session's slot on this node: its agent process, and the turn that the process is in.
 *
 * It is the only writer of its state, which changes by the events of `domain/slot.ts` and by nothing else. A
 * method that reports an event answers false where the slot refused it, and has then changed nothing. Whatever
 * is written for it carries its lease, so that the store refuses it once another process has taken the session over.
 */
export class AgentSlot {
  readonly session: SessionRecord;
  readonly lease: ProcessLease;
  /** What its agent has asked and nobody has answered yet. */
  readonly requests = new OpenRequests();
  readonly #runtime: Runtime;
  #state: Slot<LiveAgent, Recorder>;
  #task: Promise<void> | null = null;
  #starting: Promise<AgentStart> | null = null;
  #ending: Promise<void> = Promise.resolve();
  #steering: Promise<void> | null = null;
  #usageMeter: UpdateMeter | null = null;
  #idleTimer: NodeJS.Timeout | null = null;
  #stopTimer: NodeJS.Timeout | null = null;

  constructor(runtime: Runtime, of: { session: SessionRecord; lease: ProcessLease; turn: TurnRecord }) {
    this.#runtime = runtime;
    this.session = of.session;
    this.lease = of.lease;
    this.#state = newSlot(this.#recorderOf(of.turn));
    runtime.slots.set(of.session.id, this);
  }

  get state(): Slot<LiveAgent, Recorder> {
    return this.#state;
  }

  get agent(): LiveAgent | null {
    return agentOf(this.#state);
  }

  /** Of the turn that has yet to settle here. */
  get recorder(): Recorder | null {
    return turnOf(this.#state);
  }

  get limit(): Limit | null {
    return limitOf(this.#state);
  }

  /** Nothing new starts here. */
  get isEnding(): boolean {
    return this.#state.phase === "ending" || this.#state.phase === "gone";
  }

  get isStopping(): boolean {
    const state = this.#state;
    return state.phase === "stopping" || (state.phase === "ending" && state.unsettled?.isStopped === true);
  }

  get isClaimed(): boolean {
    return this.#state.phase === "idle" && this.#state.isClaimed;
  }

  get isPlanSentBack(): boolean {
    return this.#state.phase === "prompting" && this.#state.isPlanSentBack;
  }

  /** Processes that could not be stopped. */
  get left(): readonly LeftProcess[] {
    return this.#state.phase === "ending" || this.#state.phase === "gone" ? this.#state.left : [];
  }

  /** The turn under way, for whoever must wait for it. */
  get task(): Promise<void> | null {
    return this.#task;
  }

  /** The start under way. */
  get starting(): Promise<AgentStart> | null {
    return this.#starting;
  }

  get usageMeter(): UpdateMeter | null {
    return this.#usageMeter;
  }

  /** Whether this is still the turn that the slot is in. */
  isIn(recorder: Recorder): boolean {
    return this.recorder === recorder;
  }

  /** A turn whose row has been written. Null where the slot is gone: recovery takes the turn up. */
  begin(turn: TurnRecord): Recorder | null {
    const recorder = this.#recorderOf(turn);
    return this.#apply({ type: "begin", turn: recorder }) ? recorder : null;
  }

  /** Starts the agent of the turn. One that starts although the slot no longer waits for it is ended. */
  async start(open: () => Promise<AgentStart>): Promise<AgentStart> {
    const starting = open().then((started) => this.#started(started));
    this.#starting = starting;
    try {
      return await starting;
    } finally {
      this.#starting = null;
    }
  }

  /** The agent of the turn is gone, and another one is about to start. */
  restart(recorder: Recorder): boolean {
    return this.#apply({ type: "restart", turn: recorder });
  }

  /** Asks the agent to end its turn. After the grace period its process ends. */
  stop(recorder: Recorder): boolean {
    return this.#apply({ type: "stop", turn: recorder });
  }

  /** Stops a turn that has reached a limit; it fails with the first limit that it reached. */
  exceed(recorder: Recorder, limit: Limit): boolean {
    return this.#apply({ type: "limit", turn: recorder, limit });
  }

  planReviewed(recorder: Recorder, isSentBack: boolean): boolean {
    return this.#apply({ type: "plan", turn: recorder, isSentBack });
  }

  /** The outcome of the turn is written. */
  settled(recorder: Recorder, hasBackground: boolean): boolean {
    return this.#apply({ type: "settled", turn: recorder, hasBackground, at: performance.now() });
  }

  claim(): boolean {
    return this.#apply({ type: "claim" });
  }

  /** Nothing was claimed, or the turn that was has begun: then there is nothing to undo. */
  unclaim(): void {
    const isIdle = this.#apply({ type: "unclaim", at: performance.now() });
    if (isIdle && this.agent?.hasExited === true) void this.end();
  }

  /** The idle agent works by itself: it does not end before that has become a turn, or nothing. */
  stir(): boolean {
    return this.#apply({ type: "stir" });
  }

  rest(): boolean {
    return this.#apply({ type: "rest", at: performance.now() });
  }

  backgroundOver(): boolean {
    return this.#apply({ type: "backgroundOver" });
  }

  /**
   * Ends the process, in order: asked, given a grace period, killed with everything below it. The turn in it,
   * if there is one, settles by itself when its prompt ends. Resolves when the process has ended.
   */
  end(): Promise<void> {
    this.#apply({ type: "end" });
    return this.#ending;
  }

  /** Ends the process and leaves its turn open for recovery. */
  release(): Promise<void> {
    this.#apply({ type: "release" });
    return this.#ending;
  }

  /** A turn that fails in our own code is a bug: it is logged, the process ends, and recovery takes the turn up. */
  follow(task: Promise<void>): void {
    this.#task = task.catch(async (error: unknown) => {
      const { log } = this.#runtime.deps;
      log.error({ err: error, sessionId: this.session.id }, "turn failed with an internal error");
      await this.release();
    });
  }

  meterWith(usageMeter: UpdateMeter | null): void {
    this.#usageMeter = usageMeter;
  }

  /** Steers unless it is being done already. */
  async steer(run: () => Promise<void>): Promise<void> {
    if (this.#steering !== null) return;
    const steering = run();
    this.#steering = steering;
    await steering;
    if (this.#steering === steering) this.#steering = null;
  }

  /** Waits this long for a message that is being steered; what becomes of it later is no longer waited for. */
  async steered(waitMs: number): Promise<void> {
    if (this.#steering === null) return;
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(() => late.resolve(), waitMs);
    await Promise.race([this.#steering, late.promise]);
    clearTimeout(timer);
    this.#steering = null;
  }

  #recorderOf(turn: TurnRecord): Recorder {
    return new Recorder(this.#runtime.deps, turn, () => void this.end());
  }

  async #started(started: AgentStart): Promise<AgentStart> {
    if (!started.ok) return started;
    const { agent } = started;
    if (!this.#apply({ type: "started", agent })) {
      await agent.handle.stop(0);
      return UNWANTED;
    }
    void agent.handle.exited.then(() => {
      agent.hasExited = true;
      this.#apply({ type: "exited", agent });
    });
    return started;
  }

  #apply(event: SlotEvent<LiveAgent, Recorder>): boolean {
    const before = this.#state;
    const evolved = evolve(before, event);
    if (!evolved.ok) return false;
    this.#state = evolved.slot;
    for (const effect of effectsOf(before, evolved.slot)) this.#carryOut(effect);
    return true;
  }

  #carryOut(effect: SlotEffect): void {
    const { config } = this.#runtime.deps;
    switch (effect) {
      case "askToStop":
        this.agent?.handle.cancel();
        this.#stopTimer = setTimeout(() => void this.end(), config.cancelGraceMs);
        return;
      case "forgetStop":
        if (this.#stopTimer !== null) clearTimeout(this.#stopTimer);
        return;
      case "waitIdle":
        this.#waitIdle(config.idleMs);
        return;
      case "forgetIdle":
        if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
        return;
      case "endProcess":
        this.#ending = this.#end();
        return;
      case "leave":
        this.#leave();
    }
  }

  #waitIdle(waitMs: number): void {
    this.#idleTimer = setTimeout(() => void this.#endIfIdle(), waitMs);
    this.#idleTimer.unref();
  }

  async #endIfIdle(): Promise<void> {
    const since = this.#idleSince();
    const leftMs = await idleLeftMs(this.#runtime.deps, this.session.id);
    // It may have worked meanwhile.
    if (since === null || this.#idleSince() !== since) return;
    if (leftMs > 0) this.#waitIdle(leftMs);
    else await this.end();
  }

  #idleSince(): number | null {
    return this.#state.phase === "idle" ? this.#state.since : null;
  }

  async #end(): Promise<void> {
    const left = await endProcess(this.#runtime, this);
    this.#apply({ type: "ended", left });
    this.#runtime.fill();
  }

  #leave(): void {
    const { slots, fill } = this.#runtime;
    if (slots.get(this.session.id) === this) slots.delete(this.session.id);
    fill();
  }
}
