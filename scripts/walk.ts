// Follows one `spawn_session` through a whole daemon, from the call until the parent's next prompt, and
// prints how much code it passes through. `--postgres` uses PostgreSQL as the store, `--list` also prints the
// files and each change from one room (see `ROOMS`) to another, `--json` prints JSON for tests.
import { AsyncLocalStorage } from "node:async_hooks";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { reportCalls } from "./walk/instrument.ts";
import { reportStatements } from "./walk/statements.ts";

/** The folders between which changes are counted, here called rooms. A sub-folder is part of its room. */
const ROOMS: readonly string[] = ["server", "operations", "kernel", "engine", "drivers"];
/** Number of spawns. The first also loads modules and is not counted. The shortest of the rest is printed. */
const WALKS = 8;

const { values: options } = parseArgs({
  options: {
    postgres: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});

/** True in code that a timer runs. Such code is not counted, even if it runs during a walk. */
const byTimer = new AsyncLocalStorage<boolean>();
let files: string[] = [];
let statements: string[] = [];
let isOpen = false;

markTimers();
const isCounted = (): boolean => isOpen && byTimer.getStore() !== true;
reportCalls(dirname(dirname(fileURLToPath(import.meta.url))), (file) => {
  if (isCounted()) files.push(file);
});
reportStatements((text) => {
  if (isCounted()) statements.push(text);
});
const walks = await walked();
if (options.json) console.log(JSON.stringify(shortest(walks).counts));
else print(shortest(walks));
process.exit(0);

interface Walk {
  readonly files: readonly string[];
  /** The files at which the walk enters another room. */
  readonly changes: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
}

async function walked(): Promise<Walk[]> {
  // Imported here, because `src` must be instrumented before any of it is loaded.
  const { spawnAgainAndAgain } = await import("./walk/scenario.ts");
  const done: Walk[] = [];
  await spawnAgainAndAgain({
    count: WALKS,
    isPostgres: options.postgres,
    called() {
      [files, statements, isOpen] = [[], [], true];
    },
    prompted() {
      isOpen = false;
      done.push(walkOf());
    },
  });
  return done.slice(1);
}

function walkOf(): Walk {
  const rooms = files.filter((file) => ROOMS.includes(roomOf(file)));
  const changes = rooms.filter((file, index) => index > 0 && roomOf(file) !== roomOf(rooms[index - 1]!));
  const entered = [...new Set(files)].toSorted();
  const commits = statements.filter((text) => text.startsWith("COMMIT"));
  const counts = {
    files: entered.length,
    changes: changes.length,
    statements: statements.length,
    commits: commits.length,
  };
  return { files: entered, changes, counts };
}

function roomOf(file: string): string {
  return file.split("/")[1] ?? "";
}

/** Returns the walk with the fewest files and room changes: concurrent work of the daemon only adds to a walk. */
function shortest(all: readonly Walk[]): Walk {
  const by = (name: string, a: Walk, b: Walk): number => a.counts[name]! - b.counts[name]!;
  return all.toSorted((a, b) => by("files", a, b) || by("changes", a, b))[0]!;
}

function print({ files, changes, counts }: Walk): void {
  const words: Readonly<Record<string, string>> = {
    files: "source files with a function that ran",
    changes: `changes between the folders ${ROOMS.join(", ")}`,
    statements: "SQL statements",
    commits: "commits",
  };
  console.log(
    `one spawn_session until the parent's next prompt, on ${options.postgres ? "PostgreSQL" : "SQLite"}`,
  );
  for (const [name, count] of Object.entries(counts)) {
    console.log(`${String(count).padStart(6)}  ${words[name]}`);
  }
  if (options.list) console.log(["", ...files, "", ...changes].join("\n"));
}

function markTimers(): void {
  for (const name of ["setTimeout", "setInterval"] as const) {
    const known = globalThis[name] as (...args: unknown[]) => unknown;
    const marked = (run: (...args: unknown[]) => void, ...rest: unknown[]): unknown =>
      known((...args: unknown[]) => byTimer.run(true, run, ...args), ...rest);
    Reflect.set(globalThis, name, marked);
  }
}
