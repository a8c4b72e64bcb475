import type { Usage } from "../contract/index.ts";
import { deliveryIdsIn } from "../domain/callback.ts";
import { emptySeen, observe, type Seen } from "../domain/receipt.ts";
import { redact } from "../domain/redact.ts";
import { LiveRedactor } from "../domain/redact-live.ts";
import { oneLine } from "../text/fence.ts";
import type { AgentUpdate } from "../drivers/port.ts";
import { land } from "../kernel/admit.ts";
import { appendEntries } from "../kernel/entry.ts";
import { keepCompactions } from "./checkpoints.ts";
import type { NewEntry, Tx, TurnRecord } from "../store/port.ts";
import type { EngineDeps } from "./deps.ts";

const FLUSH_MS = 50;
const FLUSH_ENTRIES = 64;
/** One write takes no more than this, so that a flood does not hold up everyone else. */
const FLUSH_ENTRIES_MAX = 512;
const RETRY_MS = 1_000;

export interface Batch {
  readonly entries: readonly NewEntry[];
  /** Delivery ids seen in results of our own tools. */
  readonly landed: readonly string[];
}

/**
 * What a turn does, on its way into the store: updates become entries in batches, fragments go
 * live over the feed only. When the turn is no longer ours, `onLost` is called once and nothing
 * more is written.
 */
export class Recorder {
  readonly turn: TurnRecord;
  readonly seen: Seen = emptySeen();
  usage: Usage | null = null;
  lastText: string | null = null;
  toolUseCount = 0;
  /** The agent has answered: nothing more is put into this turn. */
  isOver = false;
  /** Messages steered into it of which the agent has not said that it took them. */
  readonly unacknowledged = new Set<string>();
  /** How many updates there have been. */
  recorded = 0;
  #entries: NewEntry[] = [];
  #landed: string[] = [];
  readonly #live = { text: new LiveRedactor(), thought: new LiveRedactor() };
  readonly #calls = new Set<string>();
  #doing = "thinking";
  #timer: NodeJS.Timeout | null = null;
  #dueAt = 0;
  #writing: Promise<unknown> = Promise.resolve();
  #isRefused = false;
  #isLast = false;
  #isLost = false;
  readonly #deps: EngineDeps;
  readonly #onLost: () => void;

  constructor(deps: EngineDeps, turn: TurnRecord, onLost: () => void) {
    this.#deps = deps;
    this.turn = turn;
    this.#onLost = onLost;
  }

  record(update: AgentUpdate): void {
    this.recorded += 1;
    if (update.kind === "fragment") {
      this.#publish(update.what, this.#live[update.what].push(update.text));
      return;
    }
    if (update.kind === "text" || update.kind === "thought") {
      this.#publish(update.kind, this.#live[update.kind].flush());
    }
    observe(this.seen, update);
    if (update.kind === "usage") {
      this.usage = update.usage;
      return;
    }
    if (update.kind === "text") this.lastText = update.text;
    if (update.kind === "toolCall" && !this.#calls.has(update.callId)) {
      this.#calls.add(update.callId);
      this.toolUseCount += 1;
    }
    if (update.kind === "toolResult" && update.ours) this.#landed.push(...deliveryIdsIn(update.text));
    this.#doing = doing(update) ?? this.#doing;
    this.#entries.push(entryOfUpdate(update, this.turn.id, this.#deps.now()));
    const isDue = this.#entries.length >= FLUSH_ENTRIES || isPassedOn(update);
    this.#flushSoon(isDue ? 0 : FLUSH_MS);
  }

  /** Live text goes out without secrets too, and those come in pieces: what may be one is held back. */
  #publish(kind: "text" | "thought", text: string): void {
    const { rootId, sessionId, id: turnId } = this.turn;
    if (text !== "") this.#deps.store.publish({ rootId, sessionId, turnId, kind, text });
  }

  notice(text: string): void {
    this.record({ kind: "notice", text });
  }

  /** Writes what has gathered, for a turn that is left to someone else. */
  async handOver(): Promise<void> {
    await this.#alone();
    await this.#flush(Number.POSITIVE_INFINITY);
    this.#isLost = true;
  }

  /** The turn's last write, with all that has gathered: it begins when no other is under way, and none follows. */
  async last(write: (batch: Batch) => Promise<boolean>): Promise<boolean> {
    await this.#alone();
    const batch = this.#pending(Number.POSITIVE_INFINITY);
    const writing = write(batch);
    this.#writing = writing.catch(() => false);
    const isWritten = await writing;
    if (isWritten) this.#drop(batch);
    return isWritten;
  }

  async #alone(): Promise<void> {
    this.#isLast = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    await this.#writing;
  }

  /** What has gathered so far. It stays until `#drop`, so that a failed write loses nothing. */
  #pending(entriesMax: number): Batch {
    return { entries: this.#entries.slice(0, entriesMax), landed: [...this.#landed] };
  }

  #drop(batch: Batch): void {
    this.#entries.splice(0, batch.entries.length);
    this.#landed.splice(0, batch.landed.length);
  }

  /** A flush that is due sooner stands, or updates without a pause would put it off for ever. */
  #flushSoon(asked: number): void {
    if (this.#isLost || this.#isLast) return;
    const waitMs = this.#isRefused ? RETRY_MS : asked;
    const dueAt = performance.now() + waitMs;
    if (this.#timer !== null && this.#dueAt <= dueAt) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#dueAt = dueAt;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#writing = this.#writing.then(() => this.#flush(FLUSH_ENTRIES_MAX));
    }, waitMs);
  }

  async #flush(entriesMax: number): Promise<void> {
    if (this.#entries.length === 0 || this.#isLost) return;
    const { rootId, sessionId, id, fence } = this.turn;
    const batch = this.#pending(entriesMax);
    try {
      const isOurs = await this.#deps.store.write(rootId, async (tx) => {
        const now = this.#deps.now();
        if (!(await tx.turns.patchRunning(id, fence, { toolUseCount: this.toolUseCount }))) return false;
        await writeBatch(tx, this.turn, batch, now);
        const evidence = { state: "working", reason: this.#doing, confidence: "certain", at: now } as const;
        await tx.sessions.patch(sessionId, { lastActivityAt: now, evidence });
        return true;
      });
      this.#isRefused = false;
      this.#drop(batch);
      this.#deps.reached("entries.appended");
      if (!isOurs) this.#lose();
      else if (this.#entries.length > 0) this.#flushSoon(0);
    } catch (error) {
      this.#deps.log.error({ err: error, sessionId }, "entries could not be written; kept for the next try");
      this.#isRefused = true;
      this.#flushSoon(RETRY_MS);
    }
  }

  #lose(): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#onLost();
  }
}

/** Part of the flush and of the settle. */
export async function writeBatch(tx: Tx, turn: TurnRecord, batch: Batch, now: number): Promise<void> {
  const appended = await appendEntries(tx, turn.sessionId, batch.entries);
  await keepCompactions(tx, turn, appended);
  for (const id of batch.landed) {
    const message = await tx.messages.byDeliveryId(turn.sessionId, id);
    if (message !== null && message.status === "taken") await land(tx, message, now);
  }
}

/** What a child shall inherit must be in the store before the call that spawns it is worked off. */
function isPassedOn(update: AgentUpdate): boolean {
  return update.kind === "toolCall" && PASSES_ON.has(update.tool);
}

const PASSES_ON: ReadonlySet<string> = new Set(["spawn_session", "create_session", "subagent"]);

function entryOfUpdate(update: AgentUpdate, turnId: string, at: number): NewEntry {
  const base = { turnId, isSubagent: false, at };
  switch (update.kind) {
    case "text":
    case "thought":
      return { ...base, author: "agent", kind: update.kind, body: { text: update.text } };
    case "toolCall": {
      const { callId, tool, input, command, paths } = update;
      const body = { text: update.title, tool, callId, input, command, paths: paths && [...paths] };
      return { ...base, author: "agent", kind: "toolCall", body };
    }
    case "toolResult": {
      const { callId, tool, ok, exitCode, command, text } = update;
      return {
        ...base,
        author: "tool",
        kind: "toolResult",
        body: { text, tool, callId, ok, exitCode, command },
      };
    }
    case "plan": {
      const steps = update.steps.map((step) => ({ ...step }));
      const text = steps.map((step) => `- ${step.title}`).join("\n");
      return { ...base, author: "agent", kind: "plan", body: { text, steps } };
    }
    case "compaction": {
      const body = {
        text: "the agent has replaced its conversation so far by a summary",
        input: { summary: update.summary },
      };
      return { ...base, author: "daemon", kind: "notice", body };
    }
    default: {
      const text = update.kind === "notice" ? update.text : "";
      return { ...base, author: "daemon", kind: "notice", body: { text } };
    }
  }
}

function doing(update: AgentUpdate): string | null {
  switch (update.kind) {
    case "thought":
      return "thinking";
    case "text":
      return "writing";
    case "toolCall":
      return oneLine(redact(update.command ?? update.title), 80);
    default:
      return null;
  }
}
