// Runs the daemon as `kinfold up` does, except that it can be told to die at a named moment.
import { kinfoldHome, loadConfig, pathsIn } from "../../src/config/index.ts";
import { startDaemon } from "../../src/daemon.ts";
import { openLog } from "../../src/log.ts";
import { noteStretches } from "./stretches.ts";

const paths = pathsIn(kinfoldHome(process.env));
const { config } = loadConfig({
  home: paths.home,
  cwd: paths.home,
  env: withoutTest(process.env),
});
const [moment, count = "1"] = (process.env["KINFOLD_TEST_CRASH"] ?? "").split(":");
let left = Number(count);

const stretches = process.env["KINFOLD_TEST_STRETCHES"];
if (stretches !== undefined) noteStretches(stretches);

const daemon = await startDaemon({
  paths,
  config,
  log: openLog({ level: config.logLevel, path: process.env["KINFOLD_TEST_LOG_FILE"] ?? null }),
  reached: (reached) => {
    if (reached !== moment) return;
    left -= 1;
    if (left === 0) process.kill(process.pid, "SIGKILL");
  },
});
process.on("SIGTERM", () => {
  void daemon.stop().then(() => process.exit(0));
});

function withoutTest(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("KINFOLD_TEST_")));
}
