import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { readDaemonFile } from "../src/config/daemon-file.ts";
import { testPostgres } from "../src/store/test-postgres.ts";
import { COMPILED } from "./support/compiled.ts";
import { eventually } from "./support/daemon.ts";

const KINFOLD = fileURLToPath(new URL("../bin/kinfold.mjs", import.meta.url));
const server = await testPostgres();
after(() => server.stop());

describe("a start while PostgreSQL is away", () => {
  it("waits, says so in `up` and to other commands, and goes on when the server is there", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "kinfold-waiting-"));
    const home = path.join(folder, "home");
    const store = await server.url();
    const kinfold = (...words: string[]): Promise<Said> => run(words, { folder, home, store });
    try {
      // The first start makes the token: with it a person may hear what is waited for.
      assert.equal((await kinfold("up", "--port", "0")).code, 0);
      assert.equal((await kinfold("down")).code, 0);
      await server.crash();
      const up = kinfold("up", "--port", "0");
      await eventually("the daemon says what it waits for", async () => {
        const waiting = readDaemonFile(path.join(home, "daemon.json"))?.waiting;
        return waiting !== undefined && /PostgreSQL at .* does not answer/.test(waiting);
      });
      const status = await kinfold("ls");
      assert.match(status.text, /The daemon is starting\. PostgreSQL at .* does not answer/);
      assert.equal(status.code, 6);
      await server.startAgain();
      const started = await up;
      assert.match(started.text, /does not answer \(.*\)\. Waiting for it\./);
      assert.match(started.text, /Daemon started/);
      assert.equal(started.code, 0);
      assert.equal(readDaemonFile(path.join(home, "daemon.json"))?.waiting, undefined);
    } finally {
      await kinfold("down", "--force");
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

interface Said {
  readonly code: number | null;
  readonly text: string;
}

async function run(
  words: readonly string[],
  at: { folder: string; home: string; store: string },
): Promise<Said> {
  const child = spawn(process.execPath, [KINFOLD, ...words], {
    cwd: at.folder,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: at.folder,
      KINFOLD_HOME: at.home,
      KINFOLD_STORE: at.store,
      NO_COLOR: "1",
      NODE_COMPILE_CACHE: COMPILED,
    },
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (text += String(chunk)));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, text };
}
