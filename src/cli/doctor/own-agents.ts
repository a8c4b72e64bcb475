import { type Agent, Config } from "../../contract/index.ts";
import { createDrivers, reportSandbox } from "../../drivers/registry.ts";
import { silentLog } from "../../log.ts";
import type { Call } from "../call.ts";
import { loadIfValid } from "../configuration.ts";
import { homeOf } from "../daemon/home.ts";

export { agentsDirOf, installAdapter, locateAdapter, VENDORS } from "../../drivers/vendors/index.ts";
export type { AdapterPackage, InstallProgress, Vendor } from "../../drivers/vendors/index.ts";

/** Returns the agents that a daemon would find if it started here and now. Starts no agent. */
export async function probeOwnAgents(call: Call): Promise<Agent[]> {
  const paths = homeOf(call);
  const config = configOf(call);
  const options = { config, simDir: paths.sim, home: paths.home, sandbox: config.sandbox, log: silentLog };
  return Promise.all([...createDrivers(options).values()].map((driver) => driver.probe()));
}

/** Returns the sandbox that a daemon would put agents in if it started here. */
export async function ownSandbox(call: Call): ReturnType<typeof reportSandbox> {
  return reportSandbox(configOf(call).sandbox);
}

/** Returns the defaults if the configuration is invalid. `checkConfig` reports the problem. */
function configOf(call: Call): Config {
  return loadIfValid(call)?.config ?? Config.parse({});
}
