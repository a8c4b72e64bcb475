import type pg from "pg";
import type { Agent } from "../../contract/index.ts";
import { isGone, isHere, ownMark, type ProcessMark } from "../../system/process-mark.ts";
import { nodeReads, nodeWrites } from "../tables/node.ts";
import type { Nodes } from "../port/store.ts";
import { StoreLocked } from "../problem.ts";
import { flag, json, maybe, valuesOf, word } from "../column.ts";
import { raw, sql, type Query } from "../sql.ts";
import { PostgresQuery } from "./connection.ts";
import { translated } from "./failure.ts";
import { withClient } from "./with-client.ts";

/** How long a renewal of the node's lease is valid, by the server's clock. */
const LIFE_MS = 30_000;
/** Grace period: another daemon may take over the node only this long after the node's lease has expired. */
const GRACE_MS = 10_000;
const LOOK_MS = 250;
/**
 * How long `register` waits for the daemon that holds the node's row, if that daemon is known to be alive. It
 * may be shutting down.
 */
const LIVING_MS = 5_000;
const NOW = raw("(extract(epoch FROM clock_timestamp()) * 1000)::bigint");

interface Claim {
  readonly pool: pg.Pool;
  readonly q: Query;
  readonly node: string;
  readonly boot: string;
  readonly waitMs: number;
}

/**
 * One row per node says which boot may act for it, and until when. `register` waits for a boot that may still
 * act, and finally refuses. If that boot's process ran on this machine and is certainly dead, `register`
 * replaces the boot at once, so that a daemon restarted after a crash does not wait.
 */
export function openNodes(claim: Claim): Nodes & { release(): Promise<void> } {
  const { q, node, boot } = claim;
  return {
    ...nodeReads(q),
    async register(agents) {
      const began = performance.now();
      for (;;) {
        const tried = await tryClaim(claim, agents);
        if (tried.holder === null) return { previousBoot: tried.previousBoot };
        const waitMs = tried.lives ? Math.min(claim.waitMs, LIVING_MS) : claim.waitMs;
        if (performance.now() - began >= waitMs) throw tried.holder;
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      }
    },
    publish: (agents) => nodeWrites(q).publish({ node, boot }, agents),
    async renew() {
      const changed = await q.run(sql`UPDATE nodes SET alive_until = ${NOW} + ${LIFE_MS}
        WHERE node = ${node} AND boot = ${boot} AND alive_until > ${NOW}`);
      return changed === 1;
    },
    async release() {
      await q.run(sql`UPDATE nodes SET alive_until = 0 WHERE node = ${node} AND boot = ${boot}`);
    },
  };
}

interface Tried {
  readonly holder: StoreLocked | null;
  readonly lives: boolean;
  readonly previousBoot: string | null;
}

function tryClaim(claim: Claim, agents: readonly Agent[]): Promise<Tried> {
  const { node, boot } = claim;
  return withClient(claim.pool, async (client) => {
    const q = new PostgresQuery(client);
    await client.query("BEGIN");
    await nodeWrites(q).make(node);
    const row = await q.get(sql`SELECT boot, (coalesce(alive_until, 0) + ${GRACE_MS} > ${NOW})::int, holder
      FROM nodes WHERE node = ${node} FOR UPDATE`);
    const [before, alive, mark] = valuesOf(row ?? [], word(), flag(), maybe(json<ProcessMark>()));
    if (before !== "" && before !== boot && alive && (mark === null || !isGone(mark))) {
      await client.query("ROLLBACK");
      return { holder: heldBy(node, before, mark), lives: mark !== null && isHere(mark), previousBoot: null };
    }
    await q.run(sql`UPDATE nodes SET boot = ${boot}, alive_until = ${NOW} + ${LIFE_MS},
      agents = ${JSON.stringify(agents)}, holder = ${JSON.stringify(ownMark())} WHERE node = ${node}`);
    await client.query("COMMIT");
    return { holder: null, lives: false, previousBoot: before === "" || before === boot ? null : before };
  }).catch((error: unknown) => {
    throw translated(error);
  });
}

function heldBy(node: string, boot: string, mark: ProcessMark | null): StoreLocked {
  return new StoreLocked(`The node "${node}"`, {
    pid: mark?.pid ?? null,
    since: mark?.since ?? null,
    host: mark?.host ?? null,
    boot,
  });
}
