import type { EngineDeps, Service } from "./deps.ts";
import type { Runner } from "./runner.ts";

/**
 * Probes the agents again on request, so that the next spawn can use a newly installed program, adapter or
 * sign-in.
 */
export class AgentProbe implements Service {
  readonly name = "agent-probe";
  readonly #deps: EngineDeps;
  readonly #runner: Runner;
  #looking: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #off: () => void = () => undefined;

  constructor(deps: EngineDeps, runner: Runner) {
    this.#deps = deps;
    this.#runner = runner;
  }

  async run(): Promise<void> {
    this.#off = this.#deps.store.onProbe(() => this.#askedFor());
  }

  async stop(): Promise<void> {
    this.#off();
    await Promise.allSettled([this.#looking, this.#next]);
  }

  /** Requests during a probe share one further probe, because the running one may miss their change. */
  #askedFor(): Promise<void> {
    if (this.#looking === null) return this.#lookNow();
    // The caller of the running probe gets its error; the next probe starts in any case.
    this.#next ??= this.#looking
      .catch(() => undefined)
      .then(() => {
        this.#next = null;
        return this.#lookNow();
      });
    return this.#next;
  }

  #lookNow(): Promise<void> {
    this.#looking = this.#look().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #look(): Promise<void> {
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
