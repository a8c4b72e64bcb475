import type { Readable, Writable } from "node:stream";
import { type Fields, fieldsOf, isFields } from "../../text/fields.ts";
import { isLong, type LineLimits, pacer, piecesOf, readLines } from "../process/line.ts";

export type Answer =
  | { readonly ok: true; readonly data: Fields }
  | { readonly ok: false; readonly error: string };

export interface Channel {
  /** Never rejects: a closed channel answers with an error. */
  send(command: Fields & { readonly type: string }): Promise<Answer>;
  readonly closed: Promise<void>;
  readonly isClosed: () => boolean;
}

export interface ChannelOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly onEvent: (event: Fields & { readonly type: string }) => void;
  readonly limits?: Partial<LineLimits>;
}

/** Reads and writes JSON lines. Only LF ends a line: pi's strings may contain other separators. */
export function openChannel(options: ChannelOptions): Channel {
  const waiting = new Map<string, (answer: Answer) => void>();
  let count = 0;
  let isClosed = false;

  const take = (message: Fields): void => {
    const { type, id } = message;
    if (type !== "response") {
      if (typeof type === "string") options.onEvent({ ...message, type });
      return;
    }
    const answer = typeof id === "string" ? waiting.get(id) : undefined;
    waiting.delete(String(id));
    const data = fieldsOf(message["data"]);
    answer?.(message["success"] === true ? { ok: true, data } : { ok: false, error: text(message["error"]) });
  };
  const read = async (): Promise<void> => {
    const pace = pacer();
    for await (const line of readLines(options.input, options.limits)) {
      for (const message of inPieces(parse(line.toString("utf8")))) {
        take(message);
        await pace();
      }
    }
    isClosed = true;
    for (const answer of waiting.values()) answer(CLOSED);
    waiting.clear();
  };

  return {
    closed: read(),
    isClosed: () => isClosed,
    send(command) {
      if (isClosed) return Promise.resolve(CLOSED);
      count += 1;
      const id = `k${count}`;
      options.output.write(`${JSON.stringify({ ...command, id })}\n`);
      return new Promise((resolve) => {
        waiting.set(id, resolve);
      });
    },
  };
}

const CLOSED: Answer = { ok: false, error: "the agent has closed its output" };

/** Splits an event whose text, `delta`, is long; passes on every other message unchanged. */
function* inPieces(message: Fields | null): Generator<Fields> {
  if (message === null) return;
  const event = fieldsOf(message["assistantMessageEvent"]);
  const { delta } = event;
  if (typeof delta !== "string" || !isLong(delta)) return yield message;
  for (const piece of piecesOf(delta)) {
    yield { ...message, assistantMessageEvent: { ...event, delta: piece } };
  }
}

function parse(line: string): Fields | null {
  try {
    const value: unknown = JSON.parse(line);
    return isFields(value) ? value : null;
  } catch {
    return null;
  }
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "pi gave no reason";
}
