import type { OperationName } from "../contract/index.ts";
import type { OperationDeps } from "./deps.ts";
import { health } from "./read/health.ts";
import type { CallerContext, Operations } from "./port.ts";

export { createGate } from "./gate.ts";
export type { OperationDeps } from "./deps.ts";
export type * from "./port.ts";

/** Loads the operations and their schemas at the first call that needs them. A health check does not. */
export function createOperations(deps: OperationDeps): Operations {
  let loaded: Promise<Operations> | null = null;
  const load = (): Promise<Operations> =>
    (loaded ??= import("./table.ts").then((module) => module.createTable(deps)));
  const later = (name: OperationName) => async (caller: CallerContext, input: never, call: never) => {
    if (name === "health" && caller.kind === "person") return health(deps, "all");
    const table = await load();
    return table[name](caller, input, call);
  };
  // `await` looks up `then` on the table. It is not an operation, so the lookup returns undefined.
  const get = (_none: Operations, name: string | symbol): unknown =>
    name === "then" || typeof name === "symbol" ? undefined : later(name as OperationName);
  return new Proxy({} as Operations, { get });
}
