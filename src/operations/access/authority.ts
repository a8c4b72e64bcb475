import {
  type Caller,
  OPERATIONS,
  type OperationName,
  Refusal,
  TOOL_WORDS,
  type TokenRight,
} from "../../contract/index.ts";
import { withheldFrom } from "../../domain/tool-list.ts";
import type { OperationDeps } from "../deps.ts";

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
  projects: "read",
  projectSession: "read",
  projectAgent: "read",
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

/** A tool that was kept from a session is refused on every surface, not only left out of a list. */
export async function requireTool(
  deps: OperationDeps,
  caller: Caller,
  operation: OperationName,
): Promise<void> {
  const tool = TOOL_OF.get(operation);
  if (caller.kind !== "session" || tool === undefined) return;
  const session = await deps.store.read.sessions.byId(caller.id);
  if (session === null || !withheldFrom(session.effective).includes(tool)) return;
  throw new Refusal(
    "tool_not_given",
    `Your profile "${session.profile}" or your parent keeps ${tool} from you. Do this part yourself, or report to your parent what should be done.`,
    { tool },
  );
}

const TOOL_OF: ReadonlyMap<string, string> = new Map(
  TOOL_WORDS.map(({ operation, name }) => [operation, name]),
);
