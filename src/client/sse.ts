import { createParser, type ParseError } from "eventsource-parser";

/** One message of a server-sent event stream, as the HTML standard defines it. */
export interface SseMessage {
  readonly event: string;
  readonly data: string;
  /** The last event id after this message; empty if none was sent yet or it was cleared. */
  readonly lastEventId: string;
}

/** The stream is considered broken if one message is longer than this. */
const MESSAGE_CHARS_MAX = 64 * 1024 * 1024;

/**
 * Reads messages from text that may be split anywhere. A block that only sets an id becomes a message with
 * empty data: it advances the cursor without an event.
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
        // Replaces the message without data that `onId` has already added for this id.
        if (id !== undefined) this.#messages.pop();
        this.#add(event, data);
      },
      onError: throwIfTooLong,
    });
  }

  /** Throws if a message is longer than `MESSAGE_CHARS_MAX`. */
  push(piece: string): SseMessage[] {
    this.#messages = [];
    this.#parser.feed(piece);
    return this.#messages;
  }

  #add(event: string, data: string): void {
    this.#messages.push({ event, data, lastEventId: this.#lastEventId });
  }
}

/**
 * Throws only for a message that is too long. Ignores other parse errors, because the standard says that
 * unknown fields are ignored.
 */
function throwIfTooLong(error: ParseError): void {
  if (error.type === "max-buffer-size-exceeded") throw error;
}
