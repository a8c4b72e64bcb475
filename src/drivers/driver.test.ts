import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { silentLog } from "../log.ts";
import { driverSuite, type DriverUnderTest } from "./driver.spec.ts";
import { createFakeDriver } from "./fake/driver.ts";
import type { Driver } from "./port.ts";
import { createProcessHost } from "./process/process.ts";
import { createSimDriver } from "./registry.ts";
import { chooseSandbox, type SandboxMode } from "./process/sandbox.ts";

driverSuite("fake", () => inFolder("the fake agent has no process", () => createFakeDriver()));

for (const sandbox of ["bubblewrap", "namespaces", "guard"] as const) {
  const found = await chooseSandbox(sandbox);
  const skip = found.kind === "none" ? found.problem : false;
  if (skip) it(`driver acp (sim, ${sandbox})`, { skip });
  else driverSuite(`acp (sim, ${sandbox})`, () => inFolder(false, (folder) => simDriver(folder, sandbox)));
}

function simDriver(folder: string, sandbox: SandboxMode): Driver {
  const host = createProcessHost({ sandbox, log: silentLog });
  return createSimDriver({ host, simDir: join(folder, "sim"), log: silentLog });
}

async function inFolder(
  noProcesses: string | false,
  make: (folder: string) => Driver,
): Promise<DriverUnderTest> {
  const cwd = await mkdtemp(join(tmpdir(), "kinfold-driver-"));
  return { driver: make(cwd), cwd, noProcesses, end: () => rm(cwd, { recursive: true, force: true }) };
}
