import type { Health, OutputOf } from "../contract/index.ts";
import { CONTRACT_VERSION } from "../contract/version.ts";
import type { Visible } from "../store/port.ts";
import type { OperationDeps } from "./deps.ts";

/** Counts and usage are of what may be seen. */
export async function health(deps: OperationDeps, visible: Visible): Promise<Health> {
  const { store } = deps;
  const midnight = new Date(deps.now()).setHours(0, 0, 0, 0);
  return {
    ok: true,
    version: deps.version,
    contract: CONTRACT_VERSION,
    pid: process.pid,
    node: store.node,
    boot: store.boot,
    epoch: store.epoch,
    store: store.kind,
    startedAt: deps.startedAt,
    counts: await store.read.sessions.counts(visible),
    usageToday: await store.read.sessions.usageSince(midnight, visible),
  };
}

export async function agents(deps: OperationDeps): Promise<OutputOf<"agents">> {
  await deps.store.probe();
  const node = await deps.store.nodes.byName(deps.config.node);
  return { agents: node?.agents ?? [] };
}
