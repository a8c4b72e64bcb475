import { createParser, type ParseError } from "eventsource-parser";

/** One message of a server-sent event stream, as the HTML standard reads it. */
export interface SseMessage {
  readonly event: string;
  readonly data: string;
  /** The id that holds after this message; empty where none was given yet or it was cleared. */
  readonly lastEventId: string;
}

/** A stream that holds back more than this in one message is broken. */
const MESSAGE_CHARS_MAX = 64 * 1024 * 1024;

/**
 * Reads messages from pieces of text that may be cut anywhere. A block that only sets an id is
 * given as a message with empty data, because that is how a cursor moves on without an event.
 */
export class SseReader {
  #messages: SseMessage[] = [];
  #lastEventId = "";
  readonly #parser;

  constructor(charsMax = MESSAGE_CHARS_MAX) {
    this.#parser = createParser({
      maxBufferSize: charsMax,
      onId: (id) => {
        this.#lastEventId = id;
        this.#add("message", "");
      },
      onEvent: ({ id, event = "message", data }) => {
        // Its id was given just before, as if it came alone.
        if (id !== undefined) this.#messages.pop();
        this.#add(event, data);
      },
      onError: throwIfTooLong,
    });
  }

  /** Throws for a message that is longer than any that the daemon sends. */
  push(piece: string): SseMessage[] {
    this.#messages = [];
    this.#parser.feed(piece);
    return this.#messages;
  }

  #add(event: string, data: string): void {
    this.#messages.push({ event, data, lastEventId: this.#lastEventId });
  }
}

/** Unknown fields are ignored, as the standard says. */
function throwIfTooLong(error: ParseError): void {
  if (error.type === "max-buffer-size-exceeded") throw error;
}
