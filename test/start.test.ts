import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { DAEMON, daemonEnv } from "../src/cli/daemon/start-daemon.ts";
import { connect } from "../src/client/index.ts";
import { pathsIn, readDaemonFile } from "../src/config/index.ts";
import { eventually } from "./support/daemon.ts";

const LOADED = fileURLToPath(new URL("./support/loaded.ts", import.meta.url));

test("until the first request but health, no schema, router or SDK is loaded", async (t) => {
  const home = mkdtempSync(path.join(tmpdir(), "kinfold-start-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const paths = pathsIn(home);
  const file = path.join(home, "loaded.txt");
  const child = spawn(process.execPath, ["--import", LOADED, DAEMON], {
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      ...daemonEnv(paths, { port: 0 }, { PATH: process.env["PATH"], HOME: home, KINFOLD_LOG_LEVEL: "error" }),
      LOADED_FILE: file,
    },
  });
  t.after(() => child.kill("SIGKILL"));
  const { url } = await eventually("the daemon is up", async () => readDaemonFile(paths.daemonFile));
  const client = connect({ url, token: readFileSync(paths.token, "utf8").trim() });
  assert.equal((await client.health()).ok, true);
  child.kill("SIGTERM");
  await once(child, "exit");
  const loaded = readFileSync(file, "utf8");
  const packages = [...loaded.matchAll(/\/node_modules\/((?:@[^/]+\/)?[^/]+)/g)].map((match) => match[1]);
  // If this fails, a module that is loaded at start probably imports a value from `contract/index.ts`, which
  // also loads the schemas. `contract/refusal.ts` and `contract/short-id.ts` provide such values without the
  // schemas.
  assert.deepEqual([...new Set(packages)], ["uuidv7"]);
  assert.doesNotMatch(loaded, /^node:https?2?$/m, "an import of node:http loads fetch with it");
});

test("the import thread loads no schema: they would make every import slower", (t) => {
  const home = mkdtempSync(path.join(tmpdir(), "kinfold-start-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const file = path.join(home, "loaded.txt");
  const thread = new URL("../src/import/scheduler.ts", import.meta.url).href;
  const code = ["--input-type=module", "-e", `await import(${JSON.stringify(thread)})`];
  const { status } = spawnSync(process.execPath, ["--import", LOADED, ...code], {
    env: { PATH: process.env["PATH"], LOADED_FILE: file },
  });
  assert.equal(status, 0);
  const loaded = readFileSync(file, "utf8");
  assert.match(loaded, /import\/scheduler\.ts/);
  assert.doesNotMatch(loaded, /node_modules\/zod|contract\/index\.ts/);
});
