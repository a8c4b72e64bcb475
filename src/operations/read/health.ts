import type { Health, OutputOf } from "../../contract/index.ts";
import { CONTRACT_VERSION } from "../../contract/version.ts";
import type { Visible } from "../../store/port/store.ts";
import type { OperationDeps } from "../deps.ts";

/** How long a health check waits for the store's counts. */
const COUNT_MS = 250;

type Counted = Pick<Health, "counts" | "usageToday" | "countedAt">;

/** The last counts, by store and by visible scopes. */
const lastCounted = new WeakMap<object, Map<string, Counted>>();

/** Counts what the caller may see. If the store does not answer in time, returns the last counts. */
export async function health(deps: OperationDeps, visible: Visible): Promise<Health> {
  const { store } = deps;
  const trouble = store.trouble();
  return {
    ok: trouble === null,
    version: deps.version,
    contract: CONTRACT_VERSION,
    pid: process.pid,
    node: store.node,
    boot: store.boot,
    epoch: store.epoch,
    store: store.kind,
    startedAt: deps.startedAt,
    ...(trouble === null ? {} : { storeTrouble: trouble }),
    ...(await counted(deps, visible)),
  };
}

async function counted(deps: OperationDeps, visible: Visible): Promise<Counted> {
  const known = lastCounted.get(deps.store) ?? new Map<string, Counted>();
  lastCounted.set(deps.store, known);
  const key = JSON.stringify(visible);
  const last = known.get(key) ?? NEVER_COUNTED;
  if (deps.store.trouble() !== null) return last;
  const counting = count(deps, visible).then((now) => {
    known.delete(key);
    known.set(key, now);
    const [oldest] = known.keys();
    if (known.size > KNOWN_MAX && oldest !== undefined) known.delete(oldest);
    return now;
  });
  const late = Promise.withResolvers<Counted>();
  const timer = setTimeout(() => late.resolve(last), COUNT_MS);
  try {
    return await Promise.race([counting, late.promise]);
  } catch (error) {
    deps.log.warn({ err: error }, "could not count sessions for a health check");
    return last;
  } finally {
    clearTimeout(timer);
  }
}

const KNOWN_MAX = 64;
const NEVER_COUNTED: Counted = {
  counts: { running: 0, waiting: 0, open: 0, unseen: 0, sessions: 0, families: 0 },
  usageToday: { tokens: 0, usd: null },
  countedAt: null,
};

async function count(deps: OperationDeps, visible: Visible): Promise<Counted> {
  const { sessions } = deps.store.read;
  const now = deps.now();
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  return {
    counts: await sessions.counts(visible),
    usageToday: await sessions.usageSince(midnight, visible),
    countedAt: now,
  };
}

export async function agents(deps: OperationDeps): Promise<OutputOf<"agents">> {
  await deps.store.probe();
  const node = await deps.store.nodes.byName(deps.config.node);
  return { agents: node?.agents ?? [] };
}
