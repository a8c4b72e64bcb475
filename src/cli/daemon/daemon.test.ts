import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "../../client/index.ts";
import { readDaemonFile } from "../../config/daemon-file.ts";
import { pathsIn } from "../../config/paths.ts";
import { isAlive } from "../../system/proc.ts";
import { keptPort } from "../../system/testing/kept-port.ts";
import { CliHome, MAIN, type Ran } from "../testing/process.ts";
import { readToken } from "./home.ts";

const cli = new CliHome();
const daemonFile = join(cli.home, "daemon.json");

async function sessionNames(): Promise<(string | null)[]> {
  const { out } = await cli.run(["ls", "--all", "--json"]);
  return (JSON.parse(out) as { sessions: { name: string | null }[] }).sessions.map(({ name }) => name);
}

/** Collects the output lines of a command that keeps running; a test awaits a line by its text. */
class Lines {
  readonly #seen: string[] = [];
  readonly #wanted = new Map<string, () => void>();
  readonly #ended: Promise<never>;

  constructor(child: ReturnType<CliHome["start"]>) {
    const lines = createInterface({ input: child.stdout! });
    lines.on("line", (line) => {
      this.#seen.push(line);
      for (const [words, found] of this.#wanted) if (line.includes(words)) found();
    });
    const ended = Promise.withResolvers<never>();
    lines.once("close", () => ended.reject(new Error(`the command ended after: ${this.#seen.join("\n")}`)));
    this.#ended = ended.promise;
    // The end is an error only while a test awaits a line.
    this.#ended.catch((error: unknown) => error);
  }

  has(words: string): boolean {
    return this.#seen.some((line) => line.includes(words));
  }

  async until(words: string): Promise<void> {
    const found = new Promise<void>((resolve) => this.#wanted.set(words, resolve));
    if (!this.has(words)) await Promise.race([found, this.#ended]);
  }
}

before(async () => {
  const { code, out, err } = await cli.run(["up", "--port", "0"]);
  assert.equal(code, 0, err);
  assert.match(out, /^✓ Daemon started \(pid \d+\) at http:\/\/127\.0\.0\.1:\d+\. Stop it: kinfold down\n$/);
});

after(async () => {
  const daemon = readDaemonFile(daemonFile);
  const { code, err } = await cli.run(["down", "--force"]);
  assert.equal(code, 0, err);
  assert.equal(daemon === null || isAlive(daemon.pid), false);
  cli.remove();
});

describe("the daemon, started and stopped by the CLI", () => {
  it("is started once: a second up says that it is already running", async () => {
    const { pid } = readDaemonFile(daemonFile)!;
    const { code, out } = await cli.run(["up", "--port", "0"]);
    assert.equal(code, 0);
    assert.match(out, new RegExp(`has been running .* \\(pid ${pid}\\)`));
  });
  it("shows itself on the status screen", async () => {
    const { out } = await cli.run([]);
    assert.match(out, /^kinfold \d.*daemon running .*\(pid \d+\) {3}http:/);
    assert.match(out, /Agents {8}.*sim [\d.]+ ✓/);
  });
  it("a port that is taken by another program is named, with what to do", async () => {
    const other = new CliHome();
    const { port } = new URL(readDaemonFile(daemonFile)!.url);
    const { code, err } = await other.run(["up", "--port", port]);
    other.remove();
    assert.equal(code, 1);
    assert.match(
      err,
      new RegExp(
        `^Port ${port} is taken by another program\\.\\n {2}Use another: kinfold up --port ${Number(port) + 1}\\n`,
      ),
    );
  });
  it("doctor finds nothing to do", async () => {
    const { code, out } = await cli.run(["doctor"]);
    assert.equal(code, 0, out);
    assert.match(out, /✓ token: only you can read it \(mode 0600\)/);
  });
});

describe("run and wait", () => {
  it("print the result and exit 0 when it completed", async () => {
    assert.deepEqual(await cli.run(["run", "--name", "echo", "hello"]), {
      code: 0,
      out: "sim: hello\n",
      err: "",
    });
    assert.deepEqual(await cli.run(["wait", "echo"]), { code: 0, out: "sim: hello\n", err: "" });
  });
  it("take the prompt from standard input", async () => {
    const { out } = await cli.run(["run", "-"], { input: "from a pipe" });
    assert.equal(out, "sim: from a pipe\n");
  });
  it("exit 1 when it failed, with the reason beside the result", async () => {
    const { code, out, err } = await cli.run(["run", "sim> fail no luck"]);
    assert.equal(code, 1);
    assert.equal(out, "");
    assert.match(err, /failed after .*no luck/);
  });
  it("exit 2 when it was refused", async () => {
    const { code, err } = await cli.run(["run", "--agent", "nobody", "x"]);
    assert.equal(code, 2);
    assert.match(err, /nobody/);
  });
  it("exit 5 when the time is up, and exit 3 when it was cancelled meanwhile", async () => {
    const { code, err } = await cli.run(["run", "--name", "long", "--timeout", "100ms", "sim> hang"]);
    assert.equal(code, 5);
    assert.match(err, /"long" is still at work and goes on/);
    const waiting = cli.run(["wait", "long"]);
    assert.match(
      (await cli.run(["cancel", "long", "--reason", "enough"])).out,
      /^✓ 1 session stopped, 0 processes left\n$/,
    );
    const waited = await waiting;
    assert.equal(waited.code, 3);
    assert.match(waited.err, /was cancelled/);
    assert.match((await cli.run(["ls", "--status", "ended"])).out, /long .*cancelled by you: enough/);
    assert.match((await cli.run(["reopen", "long"])).out, /^✓ "?long"? accepts messages again\./);
    assert.match((await cli.run(["reopen", "long"])).out, /is already open\./);
    const closed = await cli.run(["cancel", "long"]);
    assert.match(
      closed.out,
      /^✓ nothing was at work, 0 processes left\n {2}1 finished session closed\. .*kinfold reopen/,
    );
  });
});

describe("sessions by name", () => {
  it("a child is spawned under its parent and shown in its tree", async () => {
    await cli.run(["run", "--name", "parent", "hi"]);
    const { out } = await cli.run(["spawn", "--parent", "parent", "--name", "kid", "hi"]);
    assert.match(out, /^kid {2}[0-9a-f]{8} {2}sim .*1 of 8 children at work/);
    assert.equal((await cli.run(["wait", "kid"])).code, 0);
    assert.match((await cli.run(["tree", "kid"])).out, /^parent .*\n└─ kid /);
  });
  it("a mistyped name is answered with similar ones", async () => {
    await cli.run(["run", "--name", "lighthouse", "hi"]);
    const { code, err } = await cli.run(["show", "lighthuose"]);
    assert.equal(code, 2);
    assert.match(err, /There is no session "lighthuose"\.\n {2}Did you mean: lighthouse\n/);
  });
  it("tell starts the next turn of an idle session", async () => {
    await cli.run(["run", "--name", "told", "hi"]);
    const { code, out } = await cli.run(["tell", "told", "and", "again"]);
    assert.equal(code, 0);
    assert.match(out, /^✓ /);
    assert.equal((await cli.run(["wait", "told"])).out, "sim: and again\n");
  });
  it("show marks a finished session as seen", async () => {
    await cli.run(["run", "--json", "--name", "news", "hi"]);
    assert.match((await cli.run(["ls", "--unseen"])).out, /^news /m);
    assert.match((await cli.run(["show", "news"])).out, /✓ done[^]*evidence[^]*receipt[^]*sim: hi/);
    assert.doesNotMatch((await cli.run(["ls", "--unseen"])).out, /^news /m);
  });
});

describe("the CLI's output", () => {
  it("--json is the operation's own answer", async () => {
    await cli.run(["run", "--name", "listed", "hi"]);
    assert.ok((await sessionNames()).includes("listed"));
  });
  it("export gives a transcript in three formats", async () => {
    await cli.run(["run", "--name", "exported", "hi"]);
    await cli.run(["spawn", "--parent", "exported", "--name", "exported-kid", "hi"]);
    await cli.run(["wait", "exported-kid"]);
    assert.match((await cli.run(["export", "exported"])).out, /^# exported/);
    assert.match((await cli.run(["export", "exported", "--format", "text"])).out, /^exported\n/);
    const file = join(cli.home, "out.json");
    await cli.run(["export", "exported", "--tree", "--format", "json", "-o", file]);
    const { sessions } = JSON.parse(readFileSync(file, "utf8")) as { sessions: { entries: unknown[] }[] };
    assert.equal(sessions.length, 2);
    assert.ok(sessions.every((one) => one.entries.length > 0));
  });
  it("backup writes a copy that is a database", async () => {
    const file = join(cli.home, "copy.db");
    assert.equal((await cli.run(["backup", file])).code, 0);
    assert.equal(readFileSync(file).subarray(0, 15).toString(), "SQLite format 3");
  });
  it("logs are readable", async () => {
    assert.match((await cli.run(["logs", "-n", "500"])).out, /\d\d:\d\d:\d\d info {2}kinfold is up/);
  });
  it("a reader that goes away early is no error", async () => {
    await cli.run(["run", "--name", "piped", "hi"]);
    const child = spawn(
      "bash",
      ["-c", `"$0" "$1" ls --all | head -1; echo "\${PIPESTATUS[0]}"`, process.execPath, MAIN],
      { env: cli.env },
    );
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
    assert.equal(err, "");
    assert.match(out, /^NAME .*\n0\n$/);
  });
  it("completion knows the names of sessions", async () => {
    await cli.run(["run", "--name", "windmill", "hi"]);
    const script = `kinfold() { "${process.execPath}" "${MAIN}" "$@"; }; source <(kinfold completion bash); COMP_WORDS=(kinfold show windm); COMP_CWORD=2; _kinfold; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const child = spawn("bash", ["-c", script], { env: cli.env });
    assert.equal(await text(child.stdout), "windmill\n");
  });
});

describe("a restart", () => {
  const own = new CliHome();
  after(async () => {
    await own.run(["down", "--force"]);
    own.remove();
  });

  it("is survived by watch and by run: SIGKILL loses nothing", async () => {
    // Both commands keep asking at the address they know, so the second daemon needs the first one's port.
    const up = ["up", "--port", String(await keptPort())];
    assert.equal((await own.run(up)).code, 0);
    const watching = own.start(["watch"]);
    try {
      const lines = new Lines(watching);
      const { pid } = readDaemonFile(join(own.home, "daemon.json"))!;
      for (let i = 0; !lines.has("probe"); i++) await own.run(["run", "--name", `probe ${i}`, "hi"]);
      const [begun, end] = [join(own.person, "begun"), join(own.person, "end")];
      const script = `sim> run touch ${begun}; until [ -e ${end} ]; do sleep 0.05; done\nsim> say back`;
      const running = own.run(["run", "--name", "survivor", script]);
      await lines.until("survivor");
      while (!existsSync(begun)) await pause(20);
      process.kill(pid, "SIGKILL");
      while (isAlive(pid)) await pause(20);
      assert.equal((await own.run(up)).code, 0);
      writeFileSync(end, "");
      assert.deepEqual(await running, { code: 0, out: "back\n", err: "" });
      const [turn] = await turnsOf(own, "survivor");
      assert.deepEqual(
        [turn?.status, turn?.attempt],
        ["completed", 2],
        "the kill came in the middle of its turn",
      );
      await own.run(["run", "--name", "later", "hi"]);
      await lines.until("later");
    } finally {
      watching.kill();
      await once(watching, "exit");
    }
  });
});

async function turnsOf({ home }: CliHome, id: string) {
  const token = readToken(pathsIn(home), {}) ?? "";
  const client = connect({ url: readDaemonFile(join(home, "daemon.json"))!.url, token });
  return (await client.turns({ id })).turns;
}

describe("demo", () => {
  const temporary = mkdtempSync(join(tmpdir(), "kinfold-demo-test-"));
  let ran: Ran;
  let personal: unknown;
  const all = async () => ({
    daemon: readFileSync(daemonFile, "utf8"),
    names: await sessionNames(),
    files: readdirSync(cli.person, { recursive: true }),
  });
  before(async () => {
    personal = await all();
    ran = await cli.run(["demo"], { env: { TMPDIR: temporary } });
  });
  after(() => rmSync(temporary, { recursive: true, force: true }));

  it("raises three generations, kills its daemon once, loses nothing and leaves nothing behind", () => {
    const { code, out, err } = ran;
    assert.equal(code, 0, err);
    assert.match(out, /root {2}"plan a release" +sim {2}completed/);
    assert.match(out, /"fix flaky test" +sim {2}completed [\d.]+ s {3}→ reported to tests/);
    assert.match(
      out,
      /✓ 4 sessions, 3 callbacks, nothing lost \(I killed the daemon once at [\d.]+ s; did you notice\?\)/,
    );
    assert.deepEqual(readdirSync(temporary), []);
  });
  it("touches nothing of the person's: neither the daemon nor its sessions nor the home folder", async () => {
    assert.deepEqual(await all(), personal);
  });
});
