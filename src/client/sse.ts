/** One message of a server-sent event stream, as the HTML standard reads it. */
export interface SseMessage {
  readonly event: string;
  readonly data: string;
  /** The id that holds after this message; empty where none was given yet or it was cleared. */
  readonly lastEventId: string;
}

/**
 * Reads messages from pieces of text that may be cut anywhere. A block that only sets an id is
 * given as a message with empty data, because that is how a cursor moves on without an event.
 */
export class SseReader {
  /** Pieces of the line that has not ended yet. */
  #line: string[] = [];
  /** A carriage return came last, which may be the first half of an end. */
  #isReturned = false;
  #event = "";
  #data: string[] = [];
  #lastEventId = "";
  #sawId = false;

  push(piece: string): SseMessage[] {
    const messages: SseMessage[] = [];
    const text = this.#isReturned ? `\r${piece}` : piece;
    this.#isReturned = text.endsWith("\r");
    const [first = "", ...others] = (this.#isReturned ? text.slice(0, -1) : text).split(/\r\n|\n|\r/);
    this.#line.push(first);
    for (const next of others) {
      const message = this.#take(this.#line.join(""));
      if (message !== null) messages.push(message);
      this.#line = [next];
    }
    return messages;
  }

  #take(line: string): SseMessage | null {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return null;
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#event = value;
    if (field === "data") this.#data.push(value);
    if (field === "id" && !value.includes("\0")) {
      this.#lastEventId = value;
      this.#sawId = true;
    }
    return null;
  }

  #dispatch(): SseMessage | null {
    const message = {
      event: this.#event || "message",
      data: this.#data.join("\n"),
      lastEventId: this.#lastEventId,
    };
    const isSilent = this.#data.length === 0 && !this.#sawId;
    this.#event = "";
    this.#data = [];
    this.#sawId = false;
    return isSilent ? null : message;
  }
}
