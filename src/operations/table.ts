import type { OperationName } from "../contract/index.ts";
import { callerSession, requireRight, requireTool } from "./access/authority.ts";
import * as token from "./access/token.ts";
import { ask, planReview } from "./ask/ask.ts";
import { fire } from "./ask/fire.ts";
import { escalate, listTriggers, respond } from "./ask/respond.ts";
import type { Handler, OperationDeps } from "./deps.ts";
import type { Call, CallerContext, Operations } from "./port.ts";
import { agents, health } from "./read/health.ts";
import { imported, startImport } from "./read/history.ts";
import { inspect } from "./read/inspect.ts";
import { models } from "./read/models.ts";
import * as project from "./read/project.ts";
import * as read from "./read/read.ts";
import { search } from "./read/search.ts";
import { attach } from "./session/attach.ts";
import { cancel, detach } from "./session/cancel.ts";
import { checkpoint } from "./session/checkpoint.ts";
import { prompt, tell } from "./session/prompt.ts";
import { reopen } from "./session/reopen.ts";
import { update } from "./session/update.ts";
import { create, spawn } from "./spawn/spawn.ts";
import { subagent } from "./spawn/subagent.ts";
import { waitChildren } from "./wait/children.ts";
import { wait } from "./wait/wait.ts";

/** Every export of `project`, `read` and `token` is the handler of the operation with that name. */
const HANDLERS: { readonly [N in OperationName]: Handler<N> } = {
  ...project,
  ...read,
  ...token,
  agents,
  ask,
  attach,
  cancel,
  checkpoint,
  create,
  detach,
  escalate,
  fire,
  health: async (deps, caller) => {
    callerSession(caller);
    return health(deps, caller.visible);
  },
  import: startImport,
  imported,
  inspect,
  listTriggers,
  models,
  planReview,
  prompt,
  reopen,
  respond,
  search,
  spawn,
  subagent,
  tell,
  update,
  wait,
  waitChildren,
};

/** Returns the operations. Each first checks that the caller has the right and the tool is not withheld. */
export function createTable(deps: OperationDeps): Operations {
  const names = Object.keys(HANDLERS) as OperationName[];
  return Object.fromEntries(names.map((name) => [name, guarded(deps, name)])) as unknown as Operations;
}

function guarded<N extends OperationName>(deps: OperationDeps, name: N) {
  const run = HANDLERS[name] as (...args: unknown[]) => Promise<unknown>;
  return async (caller: CallerContext, input: unknown, call: Call): Promise<unknown> => {
    requireRight(caller, name);
    requireTool(caller, name);
    return run(deps, caller, { input, call });
  };
}
