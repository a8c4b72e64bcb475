import { NEW_TOKEN, unmanagedEffective } from "../../store/port/new-session.ts";
import type { Effective } from "../../contract/index.ts";
import { CallbackConfig } from "../../contract/session.ts";
import { hashOf, newId, newSecret } from "../../system/id.ts";
import { folderScope } from "../../system/folder.ts";
import type { Handler, OperationDeps } from "../deps.ts";
import { newSession } from "../spawn/effective.ts";
import { viewOne } from "../read/view.ts";
import { decideFolder } from "../spawn/ceiling.ts";

/** Patterns for the name that a client reports for itself, each with the matching agent. */
const AGENTS: readonly (readonly [RegExp, string])[] = [
  [/^claude/, "claude"],
  [/^codex/, "codex"],
  [/^gemini/, "gemini"],
  [/^opencode/, "opencode"],
  [/^goose/, "goose"],
];
const FENCE = 1;

/**
 * Creates a root session for a client that a user runs in a terminal. Kinfold does not start the client's
 * process, so the session has no lease and no turns. Its token is valid until it is revoked or the session
 * ends.
 */
export const attach: Handler<"attach"> = async (deps, _caller, { input }) => {
  const cwd = await decideFolder(deps, input.cwd, { parent: null, key: null });
  const id = newId();
  const now = deps.now();
  const token = newSecret("kfs");
  const agent = agentNamed(input.client);
  const start = {
    effective: effectiveOf(deps, agent, cwd),
    callback: CallbackConfig.parse(deps.config.callback),
    inputHash: hashOf(JSON.stringify(input)),
    instructions: null,
  };
  const row = newSession(
    id,
    { prompt: "", title: `${input.client} in ${cwd}` },
    {
      start,
      parent: null,
      source: "mcp",
      scope: folderScope(cwd),
      onParentEnd: deps.config.onParentEnd,
      keys: { key: null, keyCaller: null, keyHash: null },
      now,
    },
  );
  row.origin = "attached";
  row.fence = FENCE;
  row.spawnConfig = { client: input.client, cwd: input.cwd, pid: input.pid ?? null };
  row.evidence = { state: "idle", reason: "your terminal", confidence: "certain", at: now };
  await deps.store.write(id, async (tx) => {
    await tx.sessions.add(row);
    const data = { name: null, parentId: null, agent, model: null, depth: 0, origin: "attached" };
    tx.append({ sessionId: id, type: "session.created", text: null, data, at: now });
    await tx.tokens.add({
      hash: hashOf(token),
      kind: "session",
      sessionId: id,
      rootId: id,
      fence: FENCE,
      name: row.shortId,
      createdAt: now,
      ...NEW_TOKEN,
    });
  });
  return { session: await viewOne(deps, row), token };
};

function agentNamed(client: string): string {
  return AGENTS.find(([name]) => name.test(client.toLowerCase()))?.[1] ?? client;
}

/** What the client itself may do is unknown, so its children get at most the permission "ask". */
function effectiveOf(deps: OperationDeps, agent: string, cwd: string): Effective {
  return unmanagedEffective({ agent, node: deps.config.node, cwd, permission: "ask" });
}
