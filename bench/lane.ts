import { inHome } from "./home.ts";
import { type Kernel, NO_CALL, openKernel, PERSON } from "./kernel.ts";
import { atLeast, type Measurement } from "./measurement.ts";
import { RawSqlite } from "./raw-sqlite.ts";
import { inTurn, median, ratio, timeMs } from "./sample.ts";

const ROUNDS = 15;
const CALLERS = 16;
const EACH = 40;
const COMMITS = 200;

/**
 * Measures durable changes from many concurrent callers. The baseline is one bare SQLite commit for each
 * change.
 */
export const lane: Measurement = {
  name: "lane",
  run: () =>
    inHome(async (paths) => {
      const kernel = await openKernel(paths);
      const raw = new RawSqlite(paths);
      try {
        const roots = await Promise.all(Array.from({ length: CALLERS }, () => root(kernel)));
        await writes(kernel, roots);
        const taken = await inTurn(
          ROUNDS,
          () => writes(kernel, roots),
          async () => {
            const tookMs = await timeMs(() => {
              for (let commit = 0; commit < COMMITS; commit++) raw.commitOne();
            });
            return (COMMITS * 1000) / tookMs;
          },
        );
        const note = `${median(taken.a).toFixed(0)} per s at ${CALLERS} callers against ${median(taken.b).toFixed(0)} bare commits`;
        return [{ what: "durable operations", value: ratio(taken), unit: "times", goal: atLeast(3), note }];
      } finally {
        raw.close();
        await kernel.close();
      }
    }),
};

async function writes(kernel: Kernel, roots: readonly string[]): Promise<number> {
  const tookMs = await timeMs(() =>
    Promise.all(
      roots.map(async (id) => {
        for (let write = 0; write < EACH; write++) {
          await kernel.store.write(id, async (tx) => {
            const at = Date.now();
            tx.append({ sessionId: id, type: "notice", text: "bench", data: { write }, at });
          });
        }
      }),
    ),
  );
  return (roots.length * EACH * 1000) / tookMs;
}

async function root(kernel: Kernel): Promise<string> {
  const input = { prompt: "bench", agent: "fake", source: "cli", scope: "local" } as const;
  return (await kernel.operations.create(PERSON, input, NO_CALL)).session.id;
}
