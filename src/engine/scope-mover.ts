import { setImmediate as letOthersRun } from "node:timers/promises";
import { folderScope } from "../system/folder.ts";
import type { EngineDeps, Service } from "./deps.ts";

const PAGE = 100;
/** Number of entries that one write moves, so that other writes do not wait long. */
const SLICE = 16;

/**
 * Moves old sessions out of the scope `default`, each once. They were created before a session's folder
 * determined its scope. The store lists the sessions still to move, so a killed daemon continues at its next
 * start.
 */
export class ScopeMover implements Service {
  readonly name = "scope mover";
  readonly #deps: EngineDeps;
  #moving: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(deps: EngineDeps) {
    this.#deps = deps;
  }

  async run(): Promise<void> {
    const { log } = this.#deps;
    this.#moving = this.move().catch((error: unknown) =>
      log.error({ err: error }, "moving sessions to their scopes failed; continuing at the next start"),
    );
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#moving;
  }

  async move(): Promise<void> {
    const { store } = this.#deps;
    const scopes = new Map<string, string>();
    for (;;) {
      const page = await store.read.scopeMoves.next(store.node, PAGE);
      if (page.length === 0) return;
      for (const { sessionId, rootId, cwd } of page) {
        const scope = scopes.get(cwd) ?? folderScope(cwd);
        scopes.set(cwd, scope);
        for (let isDone = false; !isDone;) {
          if (this.#isStopped) return;
          // No fence: the write moves stored rows, regardless of which process runs the session.
          isDone = await store.write(rootId, (tx) => tx.scopeMoves.step(sessionId, scope, SLICE));
          await letOthersRun();
        }
      }
    }
  }
}
