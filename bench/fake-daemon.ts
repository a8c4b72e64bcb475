// Runs the daemon with an in-process agent, in a process that can be measured and killed.
import { kinfoldHome, loadConfig, pathsIn } from "../src/config/index.ts";
import type { Config } from "../src/contract/index.ts";
import { startDaemon } from "../src/daemon.ts";
import { createFakeDriver } from "../src/drivers/fake/driver.ts";
import type { Driver } from "../src/drivers/port.ts";
import { openLog } from "../src/log.ts";
import { benchConfig } from "./home.ts";

const paths = pathsIn(kinfoldHome(process.env));
const { config } = loadConfig({ home: paths.home, cwd: paths.home, env: process.env });
let begun = 0;
const fake = createFakeDriver({
  gate: ({ at }) => {
    if (at === "begin") begun += 1;
    if (at === "begin" && String(begun) === process.env["BENCH_TELL_TURNS"]) process.send?.("begun");
  },
});
const daemon = await startDaemon({
  paths,
  config: benchConfig({ port: config.port, idleMs: 0, ...turnsMax(process.env["BENCH_TURNS_MAX"]) }),
  log: openLog({ level: "error", path: null }),
  drivers: new Map([["fake", forgetful(fake)]]),
});
process.on("SIGTERM", () => {
  void daemon.stop().then(() => process.exit(0));
});

/**
 * Wraps a driver so that its agent always starts anew, because the in-process agent forgets everything when
 * the daemon is killed. Also reports each session's token to the parent process.
 */
function forgetful(driver: Driver): Driver {
  return {
    name: driver.name,
    probe: () => driver.probe(),
    open(request) {
      if (request.mcp !== null) process.send?.({ sessionId: request.sessionId, token: request.mcp.token });
      return driver.open({ ...request, load: null });
    },
  };
}

/** A low limit on running turns keeps spawned children waiting, so that only the spawn is measured. */
function turnsMax(value: string | undefined): Partial<Pick<Config, "limits">> {
  return value === undefined ? {} : { limits: { ...benchConfig().limits, turnsMax: Number(value) } };
}
