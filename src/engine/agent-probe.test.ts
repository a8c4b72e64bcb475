import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathsIn } from "../config/paths.ts";
import { Config } from "../contract/index.ts";
import { startDaemon } from "../daemon.ts";
import { createFakeDriver } from "../drivers/fake/driver.ts";
import type { Driver } from "../drivers/port.ts";
import { silentLog } from "../log.ts";

test("requests during a probe share one probe that begins after it", async (t) => {
  const home = mkdtempSync(join(tmpdir(), "kinfold-agent-probe-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const fake = createFakeDriver();
  const looks: PromiseWithResolvers<void>[] = [];
  const begun = [0, 1, 2].map(() => Promise.withResolvers<void>());
  const driver: Driver = {
    ...fake,
    open: (request) => fake.open(request),
    async probe() {
      const look = Promise.withResolvers<void>();
      looks.push(look);
      const at = looks.length - 1;
      begun[at]?.resolve();
      // The probe that the daemon makes at its start is not delayed.
      if (at > 0) await look.promise;
      return { ...(await fake.probe()), version: `${at}.0.0` };
    },
  };
  const daemon = await startDaemon({
    paths: pathsIn(home),
    config: Config.parse({ port: 0 }),
    log: silentLog,
    drivers: new Map([["fake", driver]]),
  });
  t.after(() => daemon.stop());
  const versionAfter = async (look: Promise<void>): Promise<string | null | undefined> => {
    await look;
    const node = await daemon.store.nodes.byName(daemon.store.node);
    return node?.agents.find((agent) => agent.name === "fake")?.version;
  };

  const first = versionAfter(daemon.store.probe());
  await begun[1]?.promise;
  const later = [daemon.store.probe(), daemon.store.probe()].map(versionAfter);
  looks[1]?.resolve();
  assert.equal(await first, "1.0.0");
  await begun[2]?.promise;
  looks[2]?.resolve();
  assert.deepEqual(await Promise.all(later), ["2.0.0", "2.0.0"]);
  assert.equal(looks.length, 3);
});
