/** The CLI's exit codes and their meanings. Help and the reference are generated from this. */
export const EXITS = {
  done: [0, "done; for run and wait: completed"],
  failed: [1, "failed"],
  refused: [2, "refused, or the command was used wrongly"],
  cancelled: [3, "cancelled"],
  interrupted: [4, "interrupted"],
  outOfTime: [5, "timed out"],
  noDaemon: [6, "the daemon is not running or cannot be reached"],
} as const satisfies Record<string, readonly [number, string]>;

export type ExitName = keyof typeof EXITS;

/** An expected problem: what is wrong, and what to do next. Shown without a stack trace. */
export class Failure extends Error {
  readonly exit: number;
  readonly code: string;
  readonly next: readonly string[];
  readonly details: Record<string, unknown>;

  constructor(exit: ExitName, message: string, more: FailureMore = {}) {
    super(message);
    this.name = "Failure";
    this.exit = EXITS[exit][0];
    this.code = more.code ?? exit;
    this.next = more.next ?? [];
    this.details = more.details ?? {};
  }
}

export interface FailureMore {
  readonly code?: string;
  readonly next?: readonly string[];
  readonly details?: Record<string, unknown>;
}

export const refused = failWith("refused");
export const failed = failWith("failed");
export const cancelled = failWith("cancelled");
export const noDaemon = failWith("noDaemon");

function failWith(exit: ExitName) {
  return (code: string, message: string, next: readonly string[] = []): Failure =>
    new Failure(exit, message, { code, next });
}
