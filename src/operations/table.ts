import type { OperationName } from "../contract/index.ts";
import { callerSession, requireRight, requireTool } from "./access/authority.ts";
import { agents, health } from "./read/health.ts";
import { ask, planReview } from "./ask/ask.ts";
import { attach } from "./session/attach.ts";
import { cancel, detach } from "./session/cancel.ts";
import { reopen } from "./session/reopen.ts";
import type { OperationDeps } from "./deps.ts";
import type { CallerContext, Operations } from "./port.ts";
import { prompt, tell } from "./session/prompt.ts";
import { checkpoint } from "./session/checkpoint.ts";
import { imported, startImport } from "./read/history.ts";
import { inspect } from "./read/inspect.ts";
import { models } from "./read/models.ts";
import { projectAgent, projects, projectSession } from "./read/project.ts";
import { search } from "./read/search.ts";
import { subagent } from "./spawn/subagent.ts";
import { createToken, listTokens, revokeToken } from "./access/token.ts";
import { fire } from "./ask/fire.ts";
import { escalate, listTriggers, respond } from "./ask/respond.ts";
import * as read from "./read/read.ts";
import { create, spawn } from "./spawn/spawn.ts";
import { update } from "./session/update.ts";
import { wait } from "./wait/wait.ts";
import { waitChildren } from "./wait/children.ts";

/** Returns one function per operation. Each may only commit and wake; the engine does the rest. */
export function createTable(deps: OperationDeps): Operations {
  return guarded({
    health: async (caller) => {
      callerSession(caller);
      return health(deps, caller.visible);
    },
    agents: () => agents(deps),
    create: (caller, input) => create(deps, caller, input),
    attach: (caller, input) => attach(deps, caller, input),
    list: (caller, input) => read.list(deps, caller, input),
    get: (caller, input) => read.get(deps, caller, input),
    update: (caller, input) => update(deps, caller, input),
    prompt: (caller, input) => prompt(deps, caller, input),
    spawn: (caller, input, call) => spawn(deps, caller, { input, call }),
    tell: (caller, input) => tell(deps, caller, input),
    cancel: (caller, input) => cancel(deps, caller, input),
    reopen: (caller, input) => reopen(deps, caller, input),
    detach: (caller, input) => detach(deps, caller, input),
    wait: (caller, input, call) => wait(deps, caller, { input, call }),
    waitChildren: (caller, input, call) => waitChildren(deps, caller, { input, call }),
    family: (caller, input) => read.family(deps, caller, input),
    tree: (caller, input) => read.tree(deps, caller, input),
    children: (caller, input) => read.children(deps, caller, input),
    turns: (caller, input) => read.turns(deps, caller, input),
    turn: (caller, input) => read.turn(deps, caller, input),
    entries: (caller, input) => read.entries(deps, caller, input),
    transcript: (caller, input) => read.transcript(deps, caller, input),
    inbox: (caller, input) => read.inbox(deps, caller, input),
    triggers: (caller, input) => read.triggers(deps, caller, input),
    ask: (caller, input, call) => ask(deps, caller, { input, call }),
    planReview: (caller, input, call) => planReview(deps, caller, { input, call }),
    respond: (caller, input) => respond(deps, caller, input),
    escalate: (caller, input) => escalate(deps, caller, input),
    fire: (caller, input) => fire(deps, caller, input),
    listTriggers: (caller, input) => listTriggers(deps, caller, input),
    inspect: (caller, input) => inspect(deps, caller, input),
    search: (caller, input) => search(deps, caller, input),
    checkpoint: (caller, input) => checkpoint(deps, caller, input),
    models: (caller, input) => models(deps, caller, input),
    subagent: (caller, input, call) => subagent(deps, caller, { input, call }),
    createToken: (caller, input) => createToken(deps, caller, input),
    listTokens: () => listTokens(deps),
    revokeToken: (caller, input) => revokeToken(deps, caller, input),
    receipt: (caller, input) => read.receipt(deps, caller, input),
    rollout: (caller, input) => read.rollout(deps, caller, input),
    import: (caller, input) => startImport(deps, caller, input),
    imported: (caller, input) => imported(deps, caller, input),
    projects: (caller) => projects(deps, caller),
    projectSession: (caller, input) => projectSession(deps, caller, input),
    projectAgent: (caller, input) => projectAgent(deps, caller, input),
    backup: (caller, input) => read.backup(deps, caller, input),
  });
}

function guarded(operations: Operations): Operations {
  const names = Object.keys(operations) as OperationName[];
  const wrap = <N extends OperationName>(name: N): Operations[N] => {
    const run = operations[name] as (...args: unknown[]) => Promise<unknown>;
    return (async (caller: CallerContext, ...rest: unknown[]) => {
      requireRight(caller, name);
      requireTool(caller, name);
      return run(caller, ...rest);
    }) as unknown as Operations[N];
  };
  return Object.fromEntries(names.map((name) => [name, wrap(name)])) as unknown as Operations;
}
