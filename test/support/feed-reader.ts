import { setTimeout as pause } from "node:timers/promises";
import type { Event } from "../../src/contract/index.ts";
import type { TestHome } from "./daemon.ts";

export interface RawMessage {
  readonly event: string;
  readonly data: string;
  /** Null if this server-sent event has no id. */
  readonly id: string | null;
}

/** Reads one connection to the feed as raw text; ends when either side cuts it. */
export async function* messagesOf(
  home: TestHome,
  at: {
    cursor: string | null;
    tree: string | null;
    signal: AbortSignal;
    cut?: (bytes: Uint8Array) => Uint8Array;
  },
): AsyncGenerator<RawMessage> {
  const query = at.tree === null ? "" : `?tree=${at.tree}`;
  const response = await fetch(`${home.url}/api/events${query}`, {
    headers: {
      authorization: `Bearer ${home.token}`,
      ...(at.cursor === null ? {} : { "last-event-id": at.cursor }),
    },
    signal: at.signal,
  });
  if (!response.ok || response.body === null) throw new Error(`the feed answered ${response.status}`);
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of response.body) {
    text += decoder.decode(at.cut?.(bytes) ?? bytes, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) yield messageOf(block);
    at.signal.throwIfAborted();
  }
}

function messageOf(block: string): RawMessage {
  const fields = new Map<string, string>();
  for (const line of block.split("\n")) {
    const [, name = "", value = ""] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    fields.set(name, value);
  }
  return { event: fields.get("event") ?? "", data: fields.get("data") ?? "", id: fields.get("id") ?? null };
}

/**
 * Follows the feed over connections that are cut at random. Drops duplicates by the rule that every client
 * follows.
 */
export class FeedReader {
  /** Everything that arrived, including duplicates. */
  readonly raw: Event[] = [];
  /** The events without duplicates. */
  readonly events: Event[] = [];
  readonly resets: string[] = [];
  firstCursor: string | null = null;
  cuts = 0;
  readonly #home: TestHome;
  readonly #tree: string | null;
  readonly #cutsMax: number;
  readonly #chance: () => number;
  readonly #seen = new Map<string, number>();
  readonly #end = new AbortController();
  readonly #done: Promise<void>;
  #cursor: string | null = null;

  /** After `cutsMax` cuts, no further connection is cut. */
  constructor(home: TestHome, options: { tree?: string; cutsMax: number; chance: () => number }) {
    this.#home = home;
    this.#tree = options.tree ?? null;
    this.#cutsMax = options.cutsMax;
    this.#chance = options.chance;
    this.#done = this.#follow();
  }

  async close(): Promise<void> {
    this.#end.abort();
    await this.#done;
  }

  async #follow(): Promise<void> {
    while (!this.#end.signal.aborted) {
      const cut = new AbortController();
      try {
        await this.#connection(cut);
      } catch (error) {
        // We or the daemon's death cut the connection. Both are expected, and the loop reconnects.
        if (!cut.signal.aborted && !this.#end.signal.aborted) await pause(20, error);
      }
    }
  }

  async #connection(cut: AbortController): Promise<void> {
    const signal = AbortSignal.any([cut.signal, this.#end.signal]);
    const isCut = this.cuts < this.#cutsMax;
    const at = { cursor: this.#cursor, tree: this.#tree, signal };
    let timer: NodeJS.Timeout | undefined;
    let isOpen = false;
    try {
      for await (const message of messagesOf(this.#home, isCut ? { ...at, cut: this.#cutter(cut) } : at)) {
        isOpen = true;
        this.#take(message);
        // Cuts the connection at a random time after the first message.
        if (isCut) timer ??= setTimeout(() => cut.abort(), Math.floor(this.#chance() * 150));
      }
    } finally {
      clearTimeout(timer);
      // A connection that was never established was not cut.
      if (isOpen) this.cuts += 1;
    }
  }

  /** Sometimes cuts the connection in the middle of the received bytes. */
  #cutter(cut: AbortController): (bytes: Uint8Array) => Uint8Array {
    return (bytes) => {
      if (this.#chance() > 0.2) return bytes;
      cut.abort();
      return bytes.subarray(0, Math.floor(this.#chance() * bytes.length));
    };
  }

  #take(message: RawMessage): void {
    if (message.id !== null) this.#cursor = message.id;
    this.firstCursor ??= this.#cursor;
    if (message.event === "reset") this.resets.push(message.data);
    if (message.event !== "event") return;
    const event = JSON.parse(message.data) as Event;
    this.raw.push(event);
    if (event.seq <= (this.#seen.get(event.rootId) ?? 0)) return;
    this.#seen.set(event.rootId, event.seq);
    this.events.push(event);
  }
}
