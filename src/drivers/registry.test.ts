import assert from "node:assert/strict";
import { it } from "node:test";
import { silentLog } from "../log.ts";
import { createDrivers } from "./registry.ts";

const common = { simDir: "/nowhere", sandbox: "auto" as const, log: silentLog };
const agent = { command: ["no-such-agent"], env: [], howToInstall: "ask someone" };

it("sim is always there, fake only when asked for, and every configured agent by its name", async () => {
  assert.deepEqual([...createDrivers({ ...common, config: { agents: {} } }).keys()], ["sim"]);
  const all = createDrivers({ ...common, config: { agents: { mine: agent } }, fake: true });
  assert.deepEqual([...all.keys()].sort(), ["fake", "mine", "sim"]);
  const sim = await all.get("sim")?.probe();
  assert.deepEqual([sim?.installed, sim?.steer, sim?.load, sim?.models], [true, "inject", true, ["sim-1"]]);
});

it("a configured agent that is not installed is described with how to install it", async () => {
  const mine = await createDrivers({ ...common, config: { agents: { mine: agent } } })
    .get("mine")
    ?.probe();
  assert.deepEqual([mine?.installed, mine?.howToInstall], [false, "ask someone"]);
});
