import type { Paint } from "./terminal/paint.ts";

/** One use of a command: what was written, and where to answer. */
export interface Call {
  readonly args: readonly string[];
  readonly flags: Flags;
  readonly io: Io;
  readonly env: NodeJS.ProcessEnv;
}

/** What a command file exports. The number is the exit code; nothing means 0. */
export interface CommandModule {
  run(call: Call): Promise<number | void>;
}

/** Where a command speaks. `out` is the answer; `err` is everything that is not. */
export interface Io {
  readonly json: boolean;
  /** The answer goes to a terminal: colours, live drawing and questions are welcome. */
  readonly tty: boolean;
  readonly columns: () => number;
  readonly rows: () => number;
  readonly paint: Paint;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  line(text?: string): void;
  note(text: string): void;
  answer(value: unknown): void;
}

/** The options as they were parsed: strings, numbers and switches. */
export class Flags {
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(values: Readonly<Record<string, unknown>>) {
    this.#values = values;
  }

  text(name: string): string | undefined {
    const value = this.#values[name];
    return typeof value === "string" ? value : undefined;
  }

  number(name: string): number | undefined {
    const value = this.#values[name];
    return typeof value === "number" ? value : undefined;
  }

  on(name: string): boolean {
    return this.#values[name] === true;
  }

  /** A `--no-…` switch: true only where it was written. */
  off(name: string): boolean {
    return this.#values[name] === false;
  }
}
