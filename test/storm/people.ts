import { setTimeout as pause } from "node:timers/promises";
import { Refusal } from "../../src/contract/refusal.ts";
import type { Client } from "../support/daemon.ts";
import type { Chance } from "./chance.ts";
import { familyPlan, messageScript } from "./family-plan.ts";
import { journalSizes } from "./journals.ts";
import type { World } from "./world.ts";

/** A message that the daemon has acknowledged to a person. */
export interface Acknowledged {
  readonly what: "prompt" | "tell" | "fire";
  readonly key: string;
  readonly sessionId: string;
}

export type Poke = "stop" | "cancel" | "tell";

/**
 * A cancel whose reply reported that no process is left. The journals of the cancelled sessions must not grow
 * afterwards.
 */
export interface Cancelled {
  readonly sessionId: string;
  readonly sizes: ReadonlyMap<string, number>;
}

const SESSIONS_OPEN_MIN = 6;
const SESSIONS_OPEN_MAX = 16;
/** Refusals that ask for a retry; any other refusal is a final answer. */
const AGAIN = new Set(["store_busy", "busy", "shutting_down", "disk_full"]);

/** The people of a storm: they start families, message, stop and cancel sessions, and answer questions. */
export class People {
  readonly acknowledged: Acknowledged[] = [];
  readonly cancelled: Cancelled[] = [];
  readonly roots: string[] = [];
  readonly #world: World;
  readonly #chance: Chance;
  readonly #answering: Chance;
  readonly #poking: Chance;
  /** The sessions that were neither idle nor ended in the last listing. */
  #atWork: readonly string[] = [];
  #isOver = false;
  #isResting = false;
  readonly #deeds: Promise<void>[] = [];
  #answers: Promise<void> = Promise.resolve();
  #families = 0;
  #keys = 0;

  constructor(world: World, parts: { acting: Chance; answering: Chance; poking: Chance }) {
    this.#world = world;
    this.#chance = parts.acting;
    this.#poking = parts.poking;
    this.#answering = parts.answering;
  }

  begin(): void {
    this.#deeds.push(this.#act());
    this.#answers = this.#answer();
  }

  /** Does `what` to a session at work. Does not wait for the reply, because a fault is injected at once. */
  poke(what: Poke): void {
    if (this.#atWork.length === 0) return;
    const id = this.#poking.pick(this.#atWork);
    const message = messageScript(this.#poking);
    const deeds = {
      stop: () => this.#stop(id),
      cancel: () => this.#cancel(id),
      tell: () => this.#send("tell", id, (client, key) => client.tell({ id, message, key })),
    };
    this.#deeds.push(deeds[what]());
  }

  /**
   * From now on, people start no families and do not message, stop or cancel sessions. They answer questions
   * until `end`.
   */
  async rest(): Promise<void> {
    this.#isResting = true;
    await Promise.all(this.#deeds);
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all([...this.#deeds, this.#answers]);
  }

  /**
   * Repeats a call until the daemon answers. The call's idempotency key prevents a second message. Returns
   * null if the storm ended first.
   */
  async call<T>(ask: (client: Client) => Promise<T>): Promise<T | Refusal | null> {
    while (!this.#isOver) {
      try {
        return await ask(this.#world.client());
      } catch (error) {
        if (error instanceof Refusal && !AGAIN.has(error.code)) return this.#refused(error);
        await pause(50);
      }
    }
    return null;
  }

  #refused(error: Refusal): Refusal {
    this.#world.counts.add(`refused: ${error.code}`);
    if (error.code === "internal") this.#world.findings.add("internal-error", error.message, error.details);
    return error;
  }

  async #act(): Promise<void> {
    while (!this.#isResting && !this.#isOver) {
      const ids = await this.#open();
      if (ids !== null) await this.#one(ids);
      await pause(this.#chance.int(30, 400));
    }
  }

  /** Returns the ids of sessions that have not ended, and how many are not idle; null if the call failed. */
  async #open(): Promise<{ all: string[]; open: number } | null> {
    const listed = await this.call(async (client) => {
      const trees = await Promise.all(this.roots.slice(-6).map((id) => client.tree({ id })));
      return trees.flatMap(({ sessions }) => sessions);
    });
    if (listed === null || listed instanceof Refusal) return null;
    const alive = listed.filter((each) => each.status !== "ended");
    const open = alive.filter((each) => each.status !== "idle");
    this.#atWork = open.map((each) => each.id);
    // The ids of open sessions occur three times, so that they are chosen more often.
    return { all: [...open, ...open, ...alive].map((each) => each.id), open: open.length };
  }

  async #one({ all, open }: { all: readonly string[]; open: number }): Promise<void> {
    const chance = this.#chance;
    const mayStart = open < SESSIONS_OPEN_MIN ? 15 : open < SESSIONS_OPEN_MAX ? 4 : 0;
    const isThere = all.length > 0 ? 1 : 0;
    const what = chance.weighted({
      family: mayStart,
      tell: 5 * isThere,
      prompt: 2 * isThere,
      fire: isThere,
      stop: 2 * isThere,
      cancel: 1.5 * isThere,
    });
    if (what === "family") return this.#family();
    const id = chance.pick(all);
    // The text is chosen before the first attempt, because a retry with the same key and another text would
    // be refused.
    const text = messageScript(chance);
    const payload = { n: chance.hex() };
    switch (what) {
      case "tell":
        return this.#send("tell", id, (client, key) => client.tell({ id, message: text, key }));
      case "prompt":
        return this.#send("prompt", id, (client, key) => client.prompt({ id, prompt: text, key }));
      case "fire":
        return this.#send("fire", id, (client, key) => client.fire({ id, type: "news", payload, key }));
      case "stop":
        return this.#stop(id);
      default:
        return this.#cancel(id);
    }
  }

  async #family(): Promise<void> {
    this.#families += 1;
    const plan = familyPlan(this.#chance, `f${this.#families}`, {
      mark: this.#world.mark,
      mayHide: this.#world.hasNamespaces,
    });
    const { work } = this.#world.home;
    const made = await this.call((client) =>
      client.create({ ...plan, cwd: work, key: `family-${plan.name}` }),
    );
    if (made === null || made instanceof Refusal) return;
    this.roots.push(made.session.id);
    this.#world.counts.add("families");
  }

  async #send(
    what: Acknowledged["what"],
    sessionId: string,
    send: (client: Client, key: string) => Promise<object>,
  ): Promise<void> {
    this.#keys += 1;
    const key = `${what}-${this.#keys}`;
    const sent = await this.call((client) => send(client, key));
    if (sent === null || sent instanceof Refusal) return;
    this.acknowledged.push({ what, key, sessionId });
    this.#world.counts.add(`sent: ${what}`);
  }

  async #stop(id: string): Promise<void> {
    await this.call((client) => client.cancel({ id, turnOnly: true }));
    this.#world.counts.add("stops of a turn");
  }

  async #cancel(id: string): Promise<void> {
    const done = await this.call((client) => client.cancel({ id, reason: "not wanted any more" }));
    if (done === null || done instanceof Refusal) return;
    this.#world.counts.add("cancels");
    if (done.stopping.length > 0) this.#world.counts.add("cancels answered while something was stopping");
    const { left } = done;
    if (left.length > 0)
      this.#world.findings.add("not-stopped", "a cancel could not stop a sim agent", { id, left });
    const isAllGone = left.length === 0 && done.stopping.length === 0;
    if (isAllGone)
      this.cancelled.push({ sessionId: done.sessionId, sizes: journalSizes(this.#world.home.home) });
  }

  async #answer(): Promise<void> {
    while (!this.#isOver) {
      const listed = await this.call((client) => client.listTriggers({ for: "all" }));
      if (listed === null) return;
      for (const trigger of listed instanceof Refusal ? [] : listed.triggers) {
        if (ASKING.has(trigger.type) && (this.#isResting || this.#answering.is(0.3)))
          await this.#respond(trigger);
      }
      await pause(this.#answering.int(50, 300));
    }
  }

  /** Answers a question. Sometimes two people answer at once; at most one of the answers is accepted. */
  async #respond(trigger: { id: string; type: string }): Promise<void> {
    const input =
      trigger.type === "plan_review"
        ? { id: trigger.id, action: "approve" as const }
        : { id: trigger.id, response: this.#answering.pick(["left", "right"]) };
    const people = this.#answering.is(0.2) ? ["a", "b"] : ["a"];
    await Promise.all(
      people.map(async (name) => {
        this.#keys += 1;
        const key = `answer-${name}-${this.#keys}`;
        const done = await this.call((client) => client.respond({ ...input, key }));
        if (done !== null && !(done instanceof Refusal)) this.#world.counts.add("answers given");
      }),
    );
  }
}

/** The triggers that need an answer from a person. */
const ASKING = new Set(["ask_user_question", "plan_review"]);
