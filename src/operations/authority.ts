import { type Caller, OPERATIONS, type OperationName, Refusal, type TokenRight } from "../contract/index.ts";

/** What an API key must be allowed, by operation. What stands not here is a person's or a session's alone. */
const NEEDS: Partial<Record<OperationName, TokenRight>> = {
  health: "read",
  agents: "read",
  models: "read",
  list: "read",
  get: "read",
  tree: "read",
  children: "read",
  turns: "read",
  turn: "read",
  entries: "read",
  transcript: "read",
  inbox: "read",
  triggers: "read",
  receipt: "read",
  inspect: "read",
  search: "read",
  wait: "read",
  listTriggers: "read",
  create: "spawn",
  spawn: "spawn",
  prompt: "spawn",
  tell: "spawn",
  respond: "answer",
  escalate: "answer",
  fire: "fire",
  cancel: "cancel",
};

/** Only server-stored grants count; what a request says about itself does not. */
export function requireRight(caller: Caller, operation: OperationName): void {
  if (caller.kind === "person") return;
  if (caller.kind === "session") {
    if (OPERATIONS[operation].sessions) return;
    throw new Refusal(
      "forbidden",
      `A session may not ask ${operation}; only a person may. Use your Kinfold tools.`,
      { operation },
    );
  }
  const right = NEEDS[operation];
  if (right !== undefined && caller.can.includes(right)) return;
  const what = right === undefined ? "only a person may ask this" : `it needs the right "${right}"`;
  throw new Refusal(
    "forbidden",
    `The API key "${caller.name}" does not reach this: ${what}. It may: ${caller.can.join(", ") || "nothing"}.`,
    { can: caller.can, needs: right ?? null },
  );
}
