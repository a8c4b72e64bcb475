import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { readDaemonFile } from "../src/config/daemon-file.ts";
import { testPostgres } from "../src/store/testing/test-postgres.ts";
import { COMPILED } from "./support/compiled.ts";
import { eventually, TestHome } from "./support/daemon.ts";

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
      // The first start creates the token. Later commands need it to ask what the daemon waits for.
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

describe("PostgreSQL that goes away under a running daemon", () => {
  it("is named by health and by every command, until it answers again", async () => {
    const home = new TestHome({ store: await server.url() });
    try {
      const client = await home.start();
      assert.equal((await client.health({})).storeTrouble, undefined);
      await server.crash();
      const trouble = await eventually("health names what is missing", async () => {
        const health = await client.health({});
        return health.ok ? null : health.storeTrouble;
      });
      assert.match(trouble.text, /PostgreSQL at .* does not answer/);
      const at = { folder: home.work, home: home.home, store: "sqlite" };
      assert.match((await run([], at)).text, /does not answer .*; this has lasted .*The daemon waits for it/);
      await server.startAgain();
      await eventually("all is well", async () => (await client.health({})).ok);
      const { session } = await client.create({ cwd: home.work, prompt: "sim> say done" });
      await client.waitFor(session.id, {});
    } finally {
      await home.close();
    }
  });
});

describe("the password of the store", () => {
  for (const how of [
    "in the background",
    "in the foreground",
    "on its command line",
    "as PGPASSWORD",
  ] as const) {
    it(`is neither in the daemon's environment nor on its command line: ${how}`, async () => {
      const folder = mkdtempSync(path.join(tmpdir(), "kinfold-password-"));
      const home = path.join(folder, "home");
      const url = new URL(await server.url());
      if (how !== "as PGPASSWORD") url.password = "canary-of-the-store";
      const env: Record<string, string> =
        how === "as PGPASSWORD" ? { PGPASSWORD: "canary-of-the-store" } : {};
      const isSaid = how === "on its command line";
      const at = { folder, home, store: isSaid ? "" : url.href, env };
      const words = ["up", "--port", "0", ...(isSaid ? [`--store=${url.href}`] : [])];
      const isForeground = how !== "in the background";
      const up = run([...words, ...(isForeground ? ["--foreground"] : [])], at);
      try {
        const pid = await eventually("the daemon is up", async () => {
          const daemon = readDaemonFile(path.join(home, "daemon.json"));
          return daemon?.waiting === undefined ? daemon?.pid : null;
        });
        for (const file of ["environ", "cmdline"]) {
          assert.doesNotMatch(readFileSync(`/proc/${pid}/${file}`, "utf8"), /canary-of-the-store/, file);
        }
        assert.deepEqual(
          readdirSync(home).filter((name) => name.startsWith("start-")),
          [],
        );
      } finally {
        await run(["down", "--force"], at);
        const { code, text } = await up;
        assert.equal(code, 0, text);
        assert.doesNotMatch(text, /Warning/);
        rmSync(folder, { recursive: true, force: true });
      }
    });
  }
});

it("a configuration that cannot be used ends a start in the foreground, also where a password is set", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "kinfold-password-"));
  const home = path.join(folder, "home");
  mkdirSync(home, { mode: 0o700 });
  writeFileSync(path.join(home, "kinfold.yaml"), "permission: nonsense\n");
  const at = { folder, home, store: "sqlite", env: { PGPASSWORD: "canary-of-the-store" }, timeout: 60_000 };
  try {
    const { code, text } = await run(["up", "--port", "0", "--foreground"], at);
    assert.equal(code, 1, text);
    assert.match(text, /kinfold\.yaml:1: permission is not valid/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

interface Said {
  readonly code: number | null;
  readonly text: string;
}

async function run(
  words: readonly string[],
  at: { folder: string; home: string; store: string; env?: Record<string, string>; timeout?: number },
): Promise<Said> {
  const child = spawn(process.execPath, [KINFOLD, ...words], {
    cwd: at.folder,
    stdio: ["ignore", "pipe", "pipe"],
    ...(at.timeout === undefined ? {} : { timeout: at.timeout }),
    killSignal: "SIGKILL",
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: at.folder,
      KINFOLD_HOME: at.home,
      KINFOLD_STORE: at.store,
      NO_COLOR: "1",
      NODE_COMPILE_CACHE: COMPILED,
      ...at.env,
    },
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (text += String(chunk)));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, text };
}
