import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { readDaemonFile } from "../src/config/daemon-file.ts";
import { isAlive } from "../src/system/proc.ts";
import { COMPILED } from "./support/compiled.ts";
import { eventually } from "./support/daemon.ts";

const KINFOLD = fileURLToPath(new URL("../bin/kinfold.mjs", import.meta.url));
let folder = "";
let home = "";

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "kinfold-restore-"));
  home = path.join(folder, "home");
});

afterEach(async () => {
  await kinfold("down", "--force");
  rmSync(folder, { recursive: true, force: true });
});

describe("a person whose store is gone", () => {
  it("is reported at the start, restored from rollouts, and the transcripts can be read again", async () => {
    await said("up", "--port", "0");
    await said("run", "--agent", "sim", "--name", "keeper", "sim> say the words that matter");
    await said("run", "--agent", "sim", "--name", "other", "sim> say more");
    await eventually("the rollouts of both are written", async () => {
      const text = rollouts();
      return text.includes('"text":"the words that matter"') && text.includes('"text":"more"');
    });
    await killDaemon();
    for (const name of ["kinfold.db", "kinfold.db-wal", "kinfold.db-shm"]) {
      rmSync(path.join(home, name), { force: true });
    }
    const up = await kinfold("up", "--port", "0");
    assert.equal(up.code, 1);
    assert.match(up.text, /kinfold\.db is missing\. There was a store here: .*holds rollouts/);
    assert.match(up.text, /kinfold restore --from-rollouts/);
    assert.equal(existsSync(path.join(home, "kinfold.db")), false, "no empty store was made");

    assert.match((await kinfold("restore")).text, /Choose exactly one source to restore from/);
    assert.match(await said("restore", "--from-rollouts"), /2 sessions rebuilt from rollouts.*rebuilt/);
    await said("up", "--port", "0");
    const listed = JSON.parse(await said("ls", "--all", "--json")) as { sessions: Listed[] };
    assert.deepEqual(
      listed.sessions.map(({ name, status, rebuilt }) => ({ name, status, rebuilt })).sort(byName),
      [
        { name: "keeper", status: "ended", rebuilt: true },
        { name: "other", status: "ended", rebuilt: true },
      ],
    );
    assert.match(await said("ls", "--all"), /keeper.*rebuilt from its rollout/);
    assert.match(await said("show", "keeper"), /the words that matter/);
    assert.match(await said("search", "matter"), /keeper/);
  });

  it("restores a backup by a relative path, and finds the old files aside", async () => {
    await said("up", "--port", "0");
    await said("run", "--agent", "sim", "--name", "keeper", "sim> say hello");
    await said("backup", "kept.db");
    assert.match((await kinfold("restore", "kept.db")).text, /is in use by another Kinfold/);
    await said("down");
    rmSync(path.join(home, "kinfold.db"));
    assert.match((await kinfold("up", "--port", "0")).text, /kinfold\.db is missing/);
    assert.match(await said("restore", "kept.db"), /The store was restored from the backup/);
    await said("up", "--port", "0");
    assert.match(await said("ls", "--all"), /keeper/);
  });
});

interface Listed {
  readonly name: string;
  readonly status: string;
  readonly rebuilt?: boolean;
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name.localeCompare(b.name);
}

function rollouts(): string {
  return readdirSync(path.join(home, "rollouts"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => readFileSync(path.join(home, "rollouts", name), "utf8"))
    .join("");
}

async function killDaemon(): Promise<void> {
  const pid = readDaemonFile(path.join(home, "daemon.json"))?.pid ?? 0;
  process.kill(pid, "SIGKILL");
  await eventually("the daemon is gone", async () => !isAlive(pid));
}

async function said(...words: string[]): Promise<string> {
  const { code, text } = await kinfold(...words);
  assert.equal(code, 0, `${words.join(" ")}: ${text}`);
  return text;
}

async function kinfold(...words: string[]): Promise<{ code: number | null; text: string }> {
  const child = spawn(process.execPath, [KINFOLD, ...words], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: folder,
      KINFOLD_HOME: home,
      NO_COLOR: "1",
      NODE_COMPILE_CACHE: COMPILED,
    },
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (text += String(chunk)));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, text };
}
