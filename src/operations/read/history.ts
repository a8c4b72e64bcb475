import { setTimeout as pause } from "node:timers/promises";
import type { HistoryProblem, HistoryScan } from "../../contract/index.ts";
import { newScan } from "../../domain/imported.ts";
import type { HistoryReader, UserHome } from "../../history/port.ts";
import type { HistoryRecord } from "../../store/port/store.ts";
import type { Handler, OperationDeps } from "../deps.ts";

/** Requests an import of the files that agents left on disk. Stores the request, then wakes the engine. */
export const startImport: Handler<"import"> = async (deps, _caller, { input }) => {
  const { imports } = deps.store;
  const before = await imports.asked();
  await imports.ask({
    exclude: input.exclude ?? before?.exclude ?? [],
    count: (before?.count ?? 0) + 1,
    at: deps.now(),
  });
  return scanOf(deps);
};

export const imported: Handler<"imported"> = async (deps, _caller, { input }) => {
  const progress = await deps.store.imports.scan();
  const rows = await deps.store.read.history.problems(deps.store.node, input.problems);
  const problems = [...(progress?.problems ?? []), ...rows.map(problemOf)];
  const scan = await scanOf(deps);
  const onDisk = input.count && !scan.enabled ? await countOnDisk(deps) : null;
  return { scan, problems: problems.slice(0, input.problems), onDisk };
};

/** Counts by file names alone: no file is opened before an import is requested. */
async function countOnDisk(deps: OperationDeps): Promise<{ agent: string; sessions: number }[]> {
  const readers = await deps.readers();
  const counts = await Promise.all(readers.map((reader) => countOf(reader, deps.userHome)));
  return counts.filter(({ sessions }) => sessions > 0);
}

/** After this time the count so far is returned, because the disk may be slow or the database large. */
const COUNT_MS = 2_000;

async function countOf(
  reader: HistoryReader,
  userHome: UserHome,
): Promise<{ agent: string; sessions: number }> {
  const deadline = performance.now() + COUNT_MS;
  let sessions = 0;
  const counting = (async () => {
    for (const root of reader.roots(userHome)) {
      for await (const { isSubagent } of reader.discover(root, () => undefined)) {
        sessions += isSubagent ? 0 : 1;
        if (performance.now() > deadline) return;
      }
    }
  })();
  const timeUp = pause(COUNT_MS, undefined, { ref: false });
  await Promise.race([counting, timeUp]);
  return { agent: reader.agent, sessions };
}

function problemOf({ format, path, problem, bad, badCount }: HistoryRecord): HistoryProblem {
  if (problem !== null) return { format, path, reason: problem, badLines: 0 };
  const [first] = bad ?? [];
  const where = first?.line == null ? "" : `line ${first.line} `;
  const more = badCount > 1 ? `, and ${badCount - 1} more like it` : "";
  return {
    format,
    path,
    reason: `${where}${first?.reason ?? "could not be read"}${more}`,
    badLines: badCount,
  };
}

async function scanOf(deps: OperationDeps): Promise<HistoryScan> {
  const { history } = deps.config;
  const asked = await deps.store.imports.asked();
  const progress = await deps.store.imports.scan();
  const enabled = history.enabled || asked !== null;
  const exclude = [...history.exclude, ...(asked?.exclude ?? [])];
  if (progress !== null) {
    const isBehind = asked !== null && (progress.scan.startedAt ?? 0) < asked.at;
    // The scan itself counts the files that could not be listed. The store counts the files that could not be
    // read.
    const problemCount =
      progress.scan.problemCount + (await deps.store.read.history.problemCount(deps.store.node));
    const phase = isBehind ? { phase: "starting" as const } : {};
    return { ...progress.scan, enabled, exclude, problemCount, ...phase };
  }
  return newScan({ enabled, phase: enabled ? "starting" : "off", exclude });
}
