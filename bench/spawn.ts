import { inHome } from "./home.ts";
import { type Kernel, NO_CALL, openKernel, PERSON } from "./kernel.ts";
import { atMost, type Measurement } from "./measurement.ts";
import { RawSqlite } from "./raw-sqlite.ts";
import { inTurn, median, ratio, timeMs } from "./sample.ts";

const ROUNDS = 40;
/** The default limit of children per parent, so that the trees have a realistic size. */
const CHILDREN = 8;
const CALLERS = 16;
const WORK = { prompt: "Look at the tests and report what is missing.", agent: "fake" };

export const spawn: Measurement = {
  name: "spawn",
  run: () =>
    inHome(async (paths) => {
      const kernel = await openKernel(paths);
      const raw = new RawSqlite(paths);
      try {
        for (let warm = 0; warm < 10; warm++) await family(kernel);
        const taken = await inTurn(
          ROUNDS,
          async () => median(await family(kernel)),
          async () => median(await commits(raw)),
        );
        const note = `p50 ${median(taken.a).toFixed(2)} ms against ${median(taken.b).toFixed(2)} ms of three bare statements`;
        return [
          { what: "spawn operation", value: ratio(taken), unit: "times", goal: atMost(4), note },
          {
            what: "spawns",
            value: await spawnsPerSecond(kernel),
            unit: "per s",
            note: `${CALLERS} callers at once, each in its own tree`,
          },
        ];
      } finally {
        raw.close();
        await kernel.close();
      }
    }),
};

/**
 * Spawns one parent's children one after another and times each. Cancels them afterwards, so that nothing
 * piles up.
 */
async function family(kernel: Kernel): Promise<number[]> {
  const { operations } = kernel;
  const id = await root(kernel);
  const taken: number[] = [];
  for (let child = 0; child < CHILDREN; child++) {
    taken.push(await timeMs(() => operations.spawn(PERSON, { id, ...WORK }, NO_CALL)));
  }
  await operations.cancel(PERSON, { id, turnOnly: false }, NO_CALL);
  return taken;
}

async function commits(raw: RawSqlite): Promise<number[]> {
  const taken: number[] = [];
  for (let child = 0; child < CHILDREN; child++) taken.push(await timeMs(() => raw.commitThree()));
  return taken;
}

async function spawnsPerSecond(kernel: Kernel): Promise<number> {
  const taken: number[] = [];
  for (let round = 0; round < 8; round++) {
    const roots = await Promise.all(Array.from({ length: CALLERS }, () => root(kernel)));
    const tookMs = await timeMs(() =>
      Promise.all(
        roots.map(async (id) => {
          for (let child = 0; child < CHILDREN; child++) {
            await kernel.operations.spawn(PERSON, { id, ...WORK }, NO_CALL);
          }
        }),
      ),
    );
    taken.push((CALLERS * CHILDREN * 1000) / tookMs);
    for (const id of roots) await kernel.operations.cancel(PERSON, { id, turnOnly: false }, NO_CALL);
  }
  return median(taken);
}

async function root(kernel: Kernel): Promise<string> {
  const { session } = await kernel.operations.create(
    PERSON,
    { ...WORK, source: "cli", scope: "local" },
    NO_CALL,
  );
  return session.id;
}
