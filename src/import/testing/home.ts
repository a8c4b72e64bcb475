import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TestContext } from "node:test";
import { connect } from "../../client/index.ts";
import { pathsIn } from "../../config/index.ts";
import { Config, type Entry, type Event, type HistoryScan, type Session } from "../../contract/index.ts";
import { startDaemon } from "../../daemon.ts";
import { silentLog } from "../../log.ts";

export interface HomeSetup {
  readonly config?: Record<string, unknown>;
  /** The agents' home folder; a new one if none is given. */
  readonly agents?: string;
  readonly home?: string;
}

const endsByTest = new WeakMap<TestContext, (() => Promise<void>)[]>();

/** Returns what to end after the test. Its hook comes first, so daemons end before folders are removed. */
function endsOf(t: TestContext): (() => Promise<void>)[] {
  const known = endsByTest.get(t);
  if (known !== undefined) return known;
  const ends: (() => Promise<void>)[] = [];
  endsByTest.set(t, ends);
  t.after(async () => {
    for (const end of ends) await end();
  });
  return ends;
}

/** Starts a daemon in this process with a separate home of agents, so that no real files are read. */
export async function startImporting(t: TestContext, setup: HomeSetup = {}) {
  const ends = endsOf(t);
  const agents = setup.agents ?? folder(t, "kinfold-agents-");
  const home = setup.home ?? folder(t, "kinfold-import-");
  const daemon = await startDaemon({
    paths: pathsIn(home),
    config: Config.parse({ port: 0, ...setup.config }),
    log: silentLog,
    place: { home: agents, env: {} },
  });
  let isDown = false;
  const stop = async (): Promise<void> => {
    if (!isDown) await daemon.stop();
    isDown = true;
  };
  ends.push(stop);
  const client = connect({ url: daemon.url, token: daemon.token });
  return {
    agents,
    home,
    claude: path.join(agents, ".claude"),
    client,
    store: daemon.store,
    stop,
    /** Requests an import and resolves when everything is read. */
    async import(input: { exclude?: string[] } = {}): Promise<HistoryScan> {
      await client.import(input);
      return until(async () => {
        const { scan } = await client.imported({});
        if (scan.error !== null) throw new Error(scan.error);
        return scan.phase === "watching" && scan;
      });
    },
    async sessions(): Promise<Session[]> {
      return (await client.list({ origin: "imported", limit: 500 })).sessions;
    },
    async byAgentId(id: string): Promise<Session> {
      const { sessions } = await client.list({ origin: "imported", limit: 500 });
      const found = sessions.find((each) => each.agentSessionId === id);
      if (found === undefined) throw new Error(`no session of ${id}`);
      return found;
    },
    async entries(id: string): Promise<Entry[]> {
      return (await client.entries({ id, limit: 1000 })).entries;
    },
  };
}

export type Importing = Awaited<ReturnType<typeof startImporting>>;

export function folder(t: TestContext, name: string): string {
  endsOf(t);
  const made = mkdtempSync(path.join(tmpdir(), name));
  t.after(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Repeats `ask` until it returns something other than null, undefined or false. */
export async function until<T>(ask: () => Promise<T | null | undefined | false>): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (answer !== null && answer !== undefined && answer !== false) return answer;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Collects everything that the feed sends from now on. */
export function following(t: TestContext, { client }: Importing): { events: Event[]; ready: Promise<void> } {
  const events: Event[] = [];
  const ending = new AbortController();
  const ready = Promise.withResolvers<void>();
  const follow = async (): Promise<void> => {
    for await (const item of client.events({ signal: ending.signal })) {
      if (item.type === "open") ready.resolve();
      if (item.type === "event") events.push(item.event);
    }
  };
  // The end of the test closes the feed, which rejects `follow`.
  const done = follow().catch(() => undefined);
  t.after(async () => {
    ending.abort();
    await done;
  });
  return { events, ready: ready.promise };
}
