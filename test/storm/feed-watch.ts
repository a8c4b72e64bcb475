import type { Event } from "../../src/contract/index.ts";
import { eventually } from "../support/daemon.ts";
import { FeedReader } from "../support/feed-reader.ts";
import type { Chance } from "./chance.ts";
import type { Tables } from "./tables.ts";
import type { World } from "./world.ts";

/** Follows the feed of all trees through the whole storm, as a page would, over connections that break. */
export class FeedWatch {
  readonly #reader: FeedReader;
  readonly #world: World;

  constructor(world: World, chance: Chance) {
    this.#world = world;
    const number = (): number => chance.int(0, 999_999) / 1_000_000;
    this.#reader = new FeedReader(world.home, { chance: number, cutsMax: 30 });
  }

  /** Resolves when the feed is open; no event is missed from then on. */
  async begun(): Promise<void> {
    await eventually("the feed has a cursor", async () => this.#reader.firstCursor);
  }

  get events(): readonly Event[] {
    return this.#reader.events;
  }

  /** Whether the last event of every tree has arrived. */
  hasAll(tables: Tables): boolean {
    const last = new Map<string, number>();
    for (const event of this.#reader.events) last.set(event.rootId, event.seq);
    return tables.trees.every((tree) => tree.seq === 0 || last.get(tree.rootId) === tree.seq);
  }

  get resets(): number {
    return this.#reader.resets.length;
  }

  async close(): Promise<void> {
    this.#world.counts.add("connections of the feed", this.#reader.cuts);
    this.#world.counts.add("resets of the feed", this.#reader.resets.length);
    await this.#reader.close();
  }
}
