import type { AnyMessage, AnyNotification, Stream } from "@agentclientprotocol/sdk/unstable";
import type { Readable, Writable } from "node:stream";
import { ReadableStream } from "node:stream/web";
import { isLong, type LineLimits, pacer, piecesOf, readLines } from "../process/line.ts";

interface StreamOptions {
  readonly input: Readable;
  readonly output: Writable;
  /**
   * Gets every notification in order, before any answer that arrives later. The SDK does not get
   * notifications: it handles them concurrently with answers, so a prompt could end before its last update. A
   * long text is split into several notifications, and the event loop may run between them.
   */
  readonly onNotification: (message: AnyNotification) => void;
  /** Called when a request's answer arrives. `left`: how many requests of this method are still open. */
  readonly onAnswer: (method: string, left: number) => void;
  /** Called when a line exceeds the limits. By then the stream has ended. */
  readonly onTooLong: (message: string) => void;
  readonly limits?: Partial<LineLimits>;
}

interface BoundedStream extends Stream {
  /** The number of lines that were not messages or that answered no open request. */
  readonly noise: () => number;
}

/**
 * A stream of JSON-RPC lines over an agent's pipes, for the SDK. It withstands any agent: it skips and counts
 * noise, drops an incomplete last line, cuts long strings before it parses a line, and has back-pressure.
 */
export function boundedStream(options: StreamOptions): BoundedStream {
  const asked = new Map<unknown, string>();
  let noise = 0;
  const pace = pacer();
  const accept = async (line: Buffer): Promise<AnyMessage | null> => {
    const message = parseMessage(line);
    if (message === null) {
      noise += 1;
      return null;
    }
    if ("method" in message && !("id" in message)) {
      for (const piece of inPieces(message)) {
        options.onNotification(piece);
        await pace();
      }
      return null;
    }
    if ("method" in message) return message;
    const method = asked.get(message.id);
    if (method === undefined) {
      // Drops an unexpected answer, because the SDK would write it to the console.
      noise += 1;
      return null;
    }
    asked.delete(message.id);
    options.onAnswer(method, [...asked.values()].filter((other) => other === method).length);
    return message;
  };
  return {
    noise: () => noise,
    // The SDK's type for this stream is the browser's, not Node's.
    readable: ReadableStream.from(readMessages(options, accept)) as Stream["readable"],
    writable: new WritableStream<AnyMessage>({
      write(message) {
        if ("method" in message && "id" in message) asked.set(message.id, message.method);
        return writeLine(options.output, message);
      },
    }),
  };
}

/** Splits a message chunk with a long text; passes on every other notification unchanged. */
function* inPieces(message: AnyNotification): Generator<AnyNotification> {
  const { params } = message as { params?: { update?: { content?: { type?: unknown; text?: unknown } } } };
  const update = params?.update;
  const { type, text } = update?.content ?? {};
  if (type !== "text" || typeof text !== "string" || !isLong(text)) return yield message;
  for (const piece of piecesOf(text)) {
    yield { ...message, params: { ...params, update: { ...update, content: { type, text: piece } } } };
  }
}

async function* readMessages(
  { input, limits, onTooLong }: StreamOptions,
  accept: (line: Buffer) => Promise<AnyMessage | null>,
): AsyncGenerator<AnyMessage, undefined> {
  for await (const line of readLines(input, limits, (problem) => onTooLong(`it wrote a line ${problem}`))) {
    const message = await accept(line);
    if (message !== null) yield message;
  }
}

function parseMessage(line: Buffer): AnyMessage | null {
  if (line.length === 0) return null;
  try {
    const value = JSON.parse(line.toString("utf8")) as AnyMessage & { jsonrpc?: string };
    const isMessage = typeof ("method" in value ? value.method : "id" in value && "") === "string";
    return isMessage && value.jsonrpc === "2.0" ? value : null;
  } catch {
    return null;
  }
}

function writeLine(output: Writable, message: AnyMessage): Promise<void> {
  return new Promise((resolve, reject) => {
    output.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
  });
}
