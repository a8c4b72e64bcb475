import type { EngineDeps, Service } from "./deps.ts";
import { sharedRun } from "../system/shared-run.ts";
import type { Runner } from "./runner.ts";

/** Probes the agents again on request, so that newly installed programs are available without a restart. */
export class AgentProbe implements Service {
  readonly name = "agent-probe";
  readonly #deps: EngineDeps;
  readonly #runner: Runner;
  #last: Promise<void> | null = null;
  #off: () => void = () => undefined;

  constructor(deps: EngineDeps, runner: Runner) {
    this.#deps = deps;
    this.#runner = runner;
  }

  async run(): Promise<void> {
    // Requests that arrive during a probe share the next probe, because the running probe may already have
    // missed a newly installed program.
    const probe = sharedRun(() => this.#probe());
    this.#off = this.#deps.store.onProbe(() => (this.#last = probe()));
  }

  async stop(): Promise<void> {
    this.#off();
    await Promise.allSettled([this.#last]);
  }

  async #probe(): Promise<void> {
    const { drivers, store, log } = this.#deps;
    const { runtime } = this.#runner;
    const found = await Promise.all([...drivers.values()].map((driver) => driver.probe()));
    const isSame = (each: (typeof found)[number]): boolean =>
      JSON.stringify(each) === JSON.stringify(runtime.agents.get(each.name));
    const changed = found.filter((each) => !isSame(each));
    if (changed.length === 0) return;
    await store.nodes.publish(found);
    runtime.agents = new Map(found.map((agent) => [agent.name, agent]));
    log.info({ agents: changed.map(({ name }) => name) }, "agents changed since the last probe");
  }
}
