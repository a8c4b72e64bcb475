import assert from "node:assert/strict";
import { it } from "node:test";
import { silentLog } from "../log.ts";
import { createFakeDriver } from "./fake/driver.ts";
import { createDrivers } from "./registry.ts";

const common = { simDir: "/nowhere", sandbox: "auto" as const, log: silentLog };
const agent = { command: ["no-such-agent"], env: [], howToInstall: "ask someone" };

const VENDOR_NAMES = ["claude", "codex", "gemini", "goose", "opencode", "pi"];

it("sim and the vendors always have a driver, fake only on request, every configured agent by its name", async () => {
  const bare = createDrivers({ ...common, config: { agents: {} } });
  assert.deepEqual([...bare.keys()].sort(), [...VENDOR_NAMES, "sim"].sort());
  const all = createDrivers({ ...common, config: { agents: { mine: agent } }, fake: createFakeDriver() });
  assert.deepEqual([...all.keys()].sort(), [...VENDOR_NAMES, "fake", "mine", "sim"].sort());
  const sim = await all.get("sim")?.probe();
  assert.deepEqual([sim?.installed, sim?.steer, sim?.load, sim?.models], [true, "inject", true, ["sim-1"]]);
});

it("a configured agent that is not installed is described with how to install it", async () => {
  const mine = await createDrivers({ ...common, config: { agents: { mine: agent } } })
    .get("mine")
    ?.probe();
  assert.deepEqual([mine?.installed, mine?.howToInstall], [false, "ask someone"]);
});

it("a vendor with another command in the configuration keeps its dialect", async () => {
  const config = { agents: { gemini: { ...agent, command: [process.execPath] } } };
  const gemini = createDrivers({ ...common, config }).get("gemini");
  const probed = await gemini?.probe();
  assert.deepEqual([probed?.installed, probed?.steer, probed?.title], [true, "restart", "Gemini CLI"]);
  assert.equal((await gemini?.probe())?.enforces?.["read-only"], "agent");
});
