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
import type { AgentHandle, AgentUpdate } from "../../drivers/port.ts";
import type { SessionRecord, Stale, TurnRecord, Tx } from "../../store/port/store.ts";
import type { EngineDeps } from "../deps.ts";
import { Recorder } from "../record/recorder.ts";
import { OpenRequests } from "../request/open-requests.ts";
import { retryWrite } from "../retry-write.ts";
import type { ProcessLease } from "./process-lease.ts";
import { type AgentStart, UNWANTED } from "./start.ts";
import { endProcess, idleLeftMs } from "./stop.ts";

/** The processes of this node, shared by the parts of the runner. All durable state is in the store. */
export interface Runtime {
  readonly deps: EngineDeps;
  /** The slots by session id. A slot removes itself when it is `gone`. */
  readonly slots: Map<string, AgentSlot>;
  /** The agents by name, as of the last probe. */
  agents: ReadonlyMap<string, Agent>;
  /** Looks for sessions that are ready to start. */
  readonly fill: () => void;
  isStopping: boolean;
  /** While true, nothing is claimed: recovery has not finished, or the node's lease is lost. */
  isHalted: boolean;
}

/** What this file uses of `UsageMeter`. Importing `UsageMeter` would make a cycle: it imports this file. */
interface UpdateMeter {
  onUpdate(update: AgentUpdate): void;
}

/**
 * A session's slot on this node: its agent process, and the turn that the process is in.
 *
 * It is the only writer of its state, and only the events of `domain/slot.ts` change the state. A method that
 * reports an event returns false if the slot refused the event; then nothing has changed. Every write for the
 * slot carries its lease, so the store refuses the write once another process has taken over the session.
 */
export class AgentSlot {
  readonly session: SessionRecord;
  readonly lease: ProcessLease;
  readonly requests = new OpenRequests();
  readonly #runtime: Runtime;
  #state: Slot<AgentHandle, Recorder>;
  readonly #exited = new WeakSet<AgentHandle>();
  readonly #prompted = new WeakSet<AgentHandle>();
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

  get state(): Slot<AgentHandle, Recorder> {
    return this.#state;
  }

  get agent(): AgentHandle | null {
    return agentOf(this.#state);
  }

  /** The recorder of the turn that has not settled yet. */
  get recorder(): Recorder | null {
    return turnOf(this.#state);
  }

  get limit(): Limit | null {
    return limitOf(this.#state);
  }

  /** True once nothing new may start in this slot. */
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

  /** Resolves when the running turn has ended. */
  get task(): Promise<void> | null {
    return this.#task;
  }

  get starting(): Promise<AgentStart> | null {
    return this.#starting;
  }

  get usageMeter(): UpdateMeter | null {
    return this.#usageMeter;
  }

  isIn(recorder: Recorder): boolean {
    return this.recorder === recorder;
  }

  hasExited(agent: AgentHandle): boolean {
    return this.#exited.has(agent);
  }

  /** Whether the process was prompted. Only its first prompt has the context from `firstPromptContext`. */
  wasPrompted(agent: AgentHandle): boolean {
    return this.#prompted.has(agent);
  }

  notePrompt(agent: AgentHandle): void {
    this.#prompted.add(agent);
  }

  /** Reports that the process has exited. If the slot is idle, the slot ends. */
  noteExit(agent: AgentHandle): void {
    this.#exited.add(agent);
    this.#apply({ type: "exited", agent });
  }

  /** Begins a turn that is already stored. Returns null if the slot is gone; recovery then takes over. */
  begin(turn: TurnRecord): Recorder | null {
    const recorder = this.#recorderOf(turn);
    return this.#apply({ type: "begin", turn: recorder }) ? recorder : null;
  }

  /** Starts the turn's agent. Stops the agent again if the slot no longer waits for it. */
  async start(open: () => Promise<AgentStart>): Promise<AgentStart> {
    const starting = open().then((started) => this.#started(started));
    this.#starting = starting;
    try {
      return await starting;
    } finally {
      this.#starting = null;
    }
  }

  /** Reports that the turn's agent is gone and another one is about to start. */
  restart(recorder: Recorder): boolean {
    return this.#apply({ type: "restart", turn: recorder });
  }

  /** Asks the agent to end its turn. Ends its process if the turn still runs after the grace period. */
  stop(recorder: Recorder): boolean {
    return this.#apply({ type: "stop", turn: recorder });
  }

  /** Stops a turn at a limit. A turn that reaches several limits fails with the first. */
  exceed(recorder: Recorder, limit: Limit): boolean {
    return this.#apply({ type: "limit", turn: recorder, limit });
  }

  planReviewed(recorder: Recorder, isSentBack: boolean): boolean {
    return this.#apply({ type: "plan", turn: recorder, isSentBack });
  }

  settled(recorder: Recorder, hasBackground: boolean): boolean {
    return this.#apply({ type: "settled", turn: recorder, hasBackground, at: performance.now() });
  }

  claim(): boolean {
    return this.#apply({ type: "claim" });
  }

  /** Undoes a claim that took no message. Does nothing if the claimed turn has begun. */
  releaseClaim(): void {
    const isIdle = this.#apply({ type: "releaseClaim", at: performance.now() });
    if (isIdle && this.agent !== null && this.hasExited(this.agent)) void this.end();
  }

  /** Reports that the idle agent works unprompted. Its process is kept until `begin` or `dropAutonomous`. */
  beginAutonomous(): boolean {
    return this.#apply({ type: "beginAutonomous" });
  }

  dropAutonomous(): boolean {
    return this.#apply({ type: "dropAutonomous", at: performance.now() });
  }

  backgroundOver(): boolean {
    return this.#apply({ type: "backgroundOver" });
  }

  /**
   * Ends the process: asks it to stop, then kills it and its descendants after the grace period. Resolves
   * when the process has ended. Does not settle a running turn; that turn settles when its prompt ends.
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

  /** Watches a turn. An error in the turn is our bug: its process is ended, and recovery takes over. */
  follow(task: Promise<void>): void {
    this.#task = task.catch(async (error: unknown) => {
      const { log } = this.#runtime.deps;
      log.error({ err: error, sessionId: this.session.id }, "turn failed with an internal error");
      await this.release();
    });
  }

  /** Writes with this slot's lease. Retries while the store fails temporarily and the slot is not ending. */
  write<T>(work: (tx: Tx) => Promise<T>): Promise<T | Stale> {
    const { deps } = this.#runtime;
    const write = (): Promise<T | Stale> => deps.store.write(this.session.rootId, this.lease, work);
    return retryWrite(deps, write, () => !this.isEnding);
  }

  meterWith(usageMeter: UpdateMeter | null): void {
    this.#usageMeter = usageMeter;
  }

  async steer(run: () => Promise<void>): Promise<void> {
    if (this.#steering !== null) return;
    const steering = run();
    this.#steering = steering;
    await steering;
    if (this.#steering === steering) this.#steering = null;
  }

  /** Waits at most `waitMs` for the running `steer`. Then allows another one, even if this one still runs. */
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
      await agent.stop(0);
      return UNWANTED;
    }
    void agent.exited.then(() => this.noteExit(agent));
    return started;
  }

  #apply(event: SlotEvent<AgentHandle, Recorder>): boolean {
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
        this.agent?.cancel();
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
    // The agent may have worked in the meantime.
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
