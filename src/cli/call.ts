import type { Paint } from "./terminal/paint.ts";

/** One invocation of a command. */
export interface Call {
  readonly args: readonly string[];
  readonly flags: Flags;
  readonly io: Io;
  readonly env: NodeJS.ProcessEnv;
}

/** `run` resolves to the exit code; undefined means 0. */
export interface CommandModule {
  run(call: Call): Promise<number | void>;
}

/** `line` and `answer` write results to standard output; `note` writes everything else to standard error. */
export interface Io {
  readonly json: boolean;
  /** True if output goes to a terminal, so colours, live drawing and questions are allowed. */
  readonly tty: boolean;
  readonly columns: () => number;
  readonly rows: () => number;
  readonly paint: Paint;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  /** A green tick, printed before a line that reports success. */
  readonly tick: string;
  line(text?: string): void;
  lines(texts: readonly string[]): void;
  note(text: string): void;
  /** Prints `text`. Prints `value` as JSON instead if `--json` was given or there is no text. */
  answer(value: unknown, text?: string): void;
}

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

  /** True if the person wrote the switch `--no-<name>`. */
  off(name: string): boolean {
    return this.#values[name] === false;
  }
}
