import type { Readable, Writable } from "node:stream";
import { isFields } from "../acp/update/tool-call.ts";
import type { Fields } from "../acp/update/tool-call.ts";
import { type LineLimits, readLines } from "../process/line.ts";

/** What pi answered to a command. */
export type Answer =
  | { readonly ok: true; readonly data: Fields }
  | { readonly ok: false; readonly error: string };

export interface Channel {
  /** Never rejects: a channel that has closed answers with an error. */
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

/** JSON lines both ways. A line ends with LF and nothing else: pi's strings may hold any other separator. */
export function openChannel(options: ChannelOptions): Channel {
  const waiting = new Map<string, (answer: Answer) => void>();
  let count = 0;
  let isClosed = false;

  const take = (line: string): void => {
    const message = parse(line);
    if (message === null) return;
    const { type, id } = message;
    if (type !== "response") {
      if (typeof type === "string") options.onEvent({ ...message, type });
      return;
    }
    const answer = typeof id === "string" ? waiting.get(id) : undefined;
    waiting.delete(String(id));
    const data = isFields(message["data"]) ? message["data"] : {};
    answer?.(message["success"] === true ? { ok: true, data } : { ok: false, error: text(message["error"]) });
  };
  const read = async (): Promise<void> => {
    for await (const line of readLines(options.input, options.limits)) take(line.toString("utf8"));
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

function parse(line: string): Fields | null {
  try {
    const value: unknown = JSON.parse(line);
    return isFields(value) ? value : null;
  } catch {
    return null;
  }
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "it did not say why";
}
