import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { sendSignal } from "../src/system/proc.ts";
import { eventually, gone, TestHome } from "./support/daemon.ts";
import { allQuiet } from "./support/family.ts";
import { SANDBOXES, whyNot } from "./support/processes.ts";
import { script, spawnStep } from "./support/script.ts";

/**
 * A program that makes a request with the person's token and writes the refusal's code, or "answered", to a
 * file. It runs with an empty environment.
 */
const ASK = `const [url, token, file] = process.argv.slice(1);
fetch(url + "/api/sessions", { headers: { authorization: "Bearer " + token } })
  .then((response) => response.json())
  .then(({ error }) => require("node:fs").writeFileSync(file, error?.code ?? "answered"));`;

let count = 0;

for (const sandbox of SANDBOXES) {
  const skip = await whyNot(sandbox);
  const setup = { env: { KINFOLD_SANDBOX: sandbox } };

  describe(`agents in the sandbox of ${sandbox}`, { skip, concurrency: 2 }, () => {
    test("a cancel ends forty children with the marker and forty without, and leaves none", async () => {
      const home = new TestHome(setup);
      const nap = newNap();
      try {
        const client = await home.start();
        const command = `for i in $(seq 40); do sleep ${nap} & env -i setsid sleep ${nap} & done; wait`;
        const { session } = await client.create({ cwd: home.work, prompt: script(`run ${command}`) });
        await eventually("all run", async () => sleepers(nap).length === 80 || null, 60_000);
        const { left, stopping } = await client.cancel({ id: session.id });
        assert.deepEqual([left, stopping], [[], []]);
        assert.deepEqual(sleepers(nap), []);
      } finally {
        await home.close();
        end(nap);
      }
    });

    test("a process without the marker may not use the person's token, also when it lost its parent", async () => {
      const home = new TestHome(setup);
      const nap = newNap();
      try {
        const client = await home.start();
        const ask = path.join(home.work, "ask.sh");
        const answer = path.join(home.work, "answer");
        const go = path.join(home.work, "go");
        const asking = `until [ -e ${go} ]; do sleep 0.05; done; ${process.execPath} -e '${ASK}' ${home.url} ${home.token} ${answer}`;
        writeFileSync(ask, asking);
        const command = `env -i PATH=/usr/bin:/bin setsid sh -c 'sh ${ask} & wait' & sleep ${nap}`;
        await client.create({ cwd: home.work, prompt: script(`run ${command}`) });
        const pid = await eventually("it waits", async () => pidOf(`sh\0${ask}\0`), 60_000);
        if (sandbox === "guard") await remembered(home, pid);
        process.kill(parentOf(pid), "SIGKILL");
        writeFileSync(go, "");
        await eventually("it was answered", async () => existsSync(answer) || null, 60_000);
        assert.equal(readFileSync(answer, "utf8"), "caller_is_agent");
      } finally {
        await home.close();
        end(nap);
      }
    });

    test("an agent spawns over loopback, and its commands see nothing of Kinfold's home", async (t) => {
      const home = new TestHome(setup);
      try {
        const client = await home.start();
        const child = script(
          `run cat ${home.home}/token ${home.home}/kinfold.db; ls ${home.home}`,
          "say done",
        );
        const prompt = script(spawnStep({ name: "kid", agent: "sim", prompt: child }));
        const { session } = await client.create({ cwd: home.work, prompt });
        await allQuiet(client, session.id);
        const { text } = await client.transcript({ id: "kid" });
        assert.match(text, /done/);
        if (sandbox === "guard") return t.skip("the guard closes no folder to commands");
        assert.equal(text.includes("kfp_"), false);
        assert.equal(/daemon\.json|rollouts|kinfold\.lock/.test(text), false, text);
      } finally {
        await home.close();
      }
    });
  });
}

test("after guard and daemon were killed, the next daemon ends the processes that the guard had recorded", async () => {
  const home = new TestHome({ env: { KINFOLD_SANDBOX: "guard" } });
  const nap = newNap();
  try {
    const client = await home.start();
    const { session } = await client.create({
      cwd: home.work,
      prompt: script(`run env -i setsid sleep ${nap} & wait`),
    });
    const pid = await eventually("it runs", async () => sleepers(nap)[0] ?? null, 60_000);
    await remembered(home, pid);
    home.signal("SIGSTOP");
    const guard = pidOf((command) => command.includes("guard-process"), home.pid);
    assert.ok(guard !== null);
    process.kill(guard, "SIGKILL");
    await home.kill();
    const parent = parentOf(pid);
    for (const { pid: marked } of home.agents()) sendSignal(marked, "SIGKILL");
    await eventually("it has another parent", async () => parentOf(pid) !== parent || null);
    assert.deepEqual(sleepers(nap), [pid], "nothing but the memory ties it to its agent");
    const after = await home.start();
    assert.ok(await gone(() => !sleepers(nap).includes(pid), 20_000));
    await after.cancel({ id: session.id });
  } finally {
    await home.close();
    end(nap);
  }
});

/** Resolves when the row of the agent's lease contains this process. */
async function remembered(home: TestHome, pid: number): Promise<void> {
  const database = new DatabaseSync(path.join(home.home, "kinfold.db"), { readOnly: true });
  try {
    await eventually("it is remembered", async () => {
      const rows = database.prepare("SELECT descendants FROM leases").all() as { descendants: string }[];
      return rows.some((row) => row.descendants.includes(`"pid":${pid},`)) || null;
    });
  } finally {
    database.close();
  }
}

/** Returns a unique sleep duration, so that a test can find the sleeping process even if it has no marker. */
function newNap(): string {
  count += 1;
  return `${700 + count}.${process.pid}`;
}

function sleepers(nap: string): number[] {
  return commands()
    .filter(({ command }) => command === `sleep\0${nap}\0`)
    .map(({ pid }) => pid);
}

function end(nap: string): void {
  for (const pid of sleepers(nap)) sendSignal(pid, "SIGKILL");
}

function pidOf(which: string | ((command: string) => boolean), parent: number | null = null): number | null {
  const isIt = typeof which === "string" ? (command: string) => command === which : which;
  const found = commands().find(
    (one) => isIt(one.command) && (parent === null || parentOf(one.pid) === parent),
  );
  return found?.pid ?? null;
}

function commands(): { pid: number; command: string }[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map((pid) => ({ pid: Number(pid), command: read(`/proc/${pid}/cmdline`) }));
}

function parentOf(pid: number): number {
  return Number(
    read(`/proc/${pid}/stat`)
      .replace(/^.*\) \S /, "")
      .split(" ")[0],
  );
}

/** Returns "" if the process has ended. */
function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
