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
  #rest = "";
  #event = "";
  #data: string[] = [];
  #lastEventId = "";
  #sawId = false;

  push(piece: string): SseMessage[] {
    const messages: SseMessage[] = [];
    this.#rest += piece;
    for (;;) {
      const end = /\r\n|\n|\r(?=[^])/.exec(this.#rest);
      if (end === null) return messages;
      const line = this.#rest.slice(0, end.index);
      this.#rest = this.#rest.slice(end.index + end[0].length);
      const message = this.#take(line);
      if (message !== null) messages.push(message);
    }
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
