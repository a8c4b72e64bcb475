import { resolve } from "node:path";
import { loadConfig } from "../../config/load.ts";
import { prepareHome } from "../../config/paths.ts";
import { silentLog } from "../../log.ts";
import { StoreProblem } from "../../store/problem.ts";
import { restore, type Restored, type RestoreSource } from "../../store/restore/restore.ts";
import type { Call } from "../call.ts";
import { refused } from "../failure.ts";
import { homeOf } from "../daemon/home.ts";
import { count } from "../../text/quantity.ts";

export async function run(call: Call): Promise<void> {
  const paths = homeOf(call);
  const source = sourceOf(call);
  prepareHome(paths);
  const { config } = loadConfig({ home: paths.home, cwd: paths.home, env: call.env });
  if (config.store !== "sqlite") {
    throw refused(
      "not_available",
      "The store of this home is a PostgreSQL server; restore the database there.",
      ["From a pg_dump file: pg_restore", "The configured store: kinfold config"],
    );
  }
  const target = { ...paths, node: config.node, log: silentLog };
  const restored = await restore(target, source).catch((error: unknown) => {
    if (error instanceof StoreProblem) throw refused("store_problem", error.message);
    throw error;
  });
  if (call.io.json) call.io.answer({ from: source.from, ...restored });
  else say(call, source, restored);
}

function sourceOf(call: Call): RestoreSource {
  const file = call.args[0];
  const asked: RestoreSource[] = [
    ...(file === undefined ? [] : [{ from: "backup", file: resolve(file) } as const]),
    ...(call.flags.on("fromRollouts") ? [{ from: "rollouts" } as const] : []),
    ...(call.flags.on("asIs") ? [{ from: "as-is" } as const] : []),
    ...(call.flags.on("empty") ? [{ from: "empty" } as const] : []),
  ];
  const [source] = asked;
  if (source !== undefined && asked.length === 1) return source;
  throw refused("wrong_use", "Choose exactly one source to restore from.", [
    "A file that kinfold backup wrote: kinfold restore <file>",
    "The transcripts in the home: kinfold restore --from-rollouts",
    "What can still be read of the store: kinfold restore --as-is",
    "An empty store: kinfold restore --empty",
  ]);
}

function say(call: Call, source: RestoreSource, restored: Restored): void {
  const { io } = call;
  const made = {
    backup: () => "The store was restored from the backup.",
    rollouts: () =>
      `${count(restored.sessions, "session")} rebuilt from rollouts, ended and marked as rebuilt; ` +
      `${count(restored.entries, "entry", "entries")} of their transcripts are back.`,
    "as-is": () => "The store holds what could still be read; its newest commits may be lost.",
    empty: () => "The store is empty.",
  };
  io.line(`${io.tick} ${made[source.from]()}`);
  if (source.from === "rollouts") io.line("  API keys, open questions and unread inbox messages are lost.");
  for (const path of restored.unreadable) io.line(`  Could not be read to its end: ${path}`);
  if (restored.aside !== null) io.line(`  The old files are in ${restored.aside}`);
  io.line("  Start the daemon: kinfold up");
}
