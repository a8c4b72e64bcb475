import { randomUUID } from "node:crypto";
import { loadProfiles, type Paths } from "../src/config/index.ts";
import { createFakeDriver } from "../src/drivers/fake/driver.ts";
import { silentLog } from "../src/log.ts";
import { NO_CEILING } from "../src/operations/deps.ts";
import {
  type CallerContext,
  createOperations,
  type OperationDeps,
  type Operations,
} from "../src/operations/index.ts";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/port/store.ts";
import { benchConfig } from "./home.ts";

export const PERSON: CallerContext = {
  kind: "person",
  id: "bench",
  name: "bench",
  self: null,
  visible: "all",
  role: "full",
  withheld: [],
};
export const NO_CALL = { signal: new AbortController().signal, callId: null };

export interface Kernel {
  readonly store: Store;
  readonly operations: Operations;
  close(): Promise<void>;
}

/**
 * Opens the real store and its operations without an engine. Operations commit their changes, but no agent
 * starts.
 */
export async function openKernel(paths: Paths): Promise<Kernel> {
  const config = benchConfig();
  const store = await openStore({ config, paths, boot: randomUUID(), log: silentLog });
  await store.nodes.register([await createFakeDriver().probe()]);
  const deps: OperationDeps = {
    store,
    config,
    log: silentLog,
    now: Date.now,
    reached: () => undefined,
    address: () => "http://127.0.0.1:4680",
    privateFolders: [],
    rolloutPath: (session) => session.id,
    projectCeiling: async () => NO_CEILING,
    readers: async () => [],
    userHome: { home: "/nowhere", env: {} },
    version: "bench",
    profiles: (cwd) => loadProfiles({ home: paths.home, project: cwd }),
    startedAt: Date.now(),
  };
  return { store, operations: createOperations(deps), close: () => store.close() };
}
