import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { type Client, eventually, TestHome } from "./daemon.ts";
import { longestStretch, slownessesIn } from "./stretches.ts";

/**
 * The longest time that the daemon's main thread may work without a break, in processor time of two idle cores.
 */
export const STRETCH_MAX_MS = 50;
const AT_WORK = 50;

/** A kinfold.yaml that defines the agent `attack`. */
export function attackYaml(more = ""): string {
  const command = JSON.stringify([process.execPath, beside("attack-agent.ts")]);
  return `agents:\n  attack: { command: ${command} }\nenforcement: mode\n${more}`;
}

const YAML = `
agents:
  attack: { command: ["${process.execPath}", "${beside("attack-agent.ts")}"] }
  busy: { command: ["/bin/sh", "${beside("busy-agent.sh")}"] }
enforcement: mode
limits: { turnsMax: 80, processesMax: 80, sessionsMax: 200, childrenMax: 200, spawnsPerMinuteMax: 1000 }
`;

export interface Ground {
  readonly home: TestHome;
  readonly client: Client;
  /** The root of the working sessions. */
  readonly root: string;
}

export type Attack = (ground: Ground) => Promise<void>;

export interface Damage {
  readonly what: string;
  /**
   * The longest time that the daemon's main thread worked without a break, in processor time of two idle
   * cores: divided by how many times as long a yardstick took in the same process.
   */
  readonly longestMs: number;
  readonly slowness: number;
  readonly wallMs: number;
}

/** Attacks by one agent: long messages in every form, and many tool calls. */
export const LONG_MESSAGES: Readonly<Record<string, Attack>> = {
  "a message of 20 MB in pieces of 64 KB": saying("says 20480"),
  "a message of 20 MB of prose": saying("tells 20480"),
  "a message of 20 MB in one line": saying("shouts 20480"),
  "a message of 20 MB that looks like secrets": saying("hints 20480"),
  "a message of 20 MB that is one secret": saying("leaks 20480"),
  "tool results of 256 KB that look like secrets": saying("finds 20"),
  "a message of 50,000 words, each a piece": saying("dribbles 50000"),
  "5,000 tool calls": saying("digs 5000"),
};

export const HUGE_MESSAGES: Readonly<Record<string, Attack>> = {
  "a message of 200 MB in pieces of 64 KB": saying("says 204800"),
  "a message of 200 MB of prose": saying("tells 204800"),
  "a message of 200 MB in one line": saying("shouts 204800"),
  "a message of 200,000 words, each a piece": saying("dribbles 200000"),
  "20,000 tool calls": saying("digs 20000"),
};

function saying(prompt: string): Attack {
  return async ({ client, home, root }) => {
    const before = (await client.children({ id: root })).sessions.length;
    const { session } = await client.create({ agent: "attack", cwd: home.work, prompt });
    await client.waitFor(session.id);
    // The other sessions are unharmed.
    assert.equal((await client.children({ id: root })).sessions.length, before);
  };
}

/** Attacks by an agent, a client or a project's files. They must not hold up the other sessions. */
export const ATTACKS: Readonly<Record<string, Attack>> = {
  "a thousand permission requests": async ({ client, home }) => {
    const { session } = await client.create({ agent: "attack", cwd: home.work, prompt: "asks 1000" });
    await eventually("the rest is denied", async () => {
      const { entries } = await client.entries({ id: session.id, limit: 100 });
      return entries.some((each) => each.body.text.includes("further requests are denied"));
    });
    await client.cancel({ id: session.id });
  },
  "a call that nests 100,000 levels": async ({ client, home }) => {
    const { session } = await client.create({ agent: "attack", cwd: home.work, prompt: "nests 100000" });
    await client.waitFor(session.id);
  },
  "two hundred writes at once": async ({ home, root }) => {
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        post(home, `/api/sessions/${root}/prompt`, `{"prompt":"more ${n}"}`),
      ),
    );
    assert.ok(
      answers.every((status) => status === 200 || status === 503),
      String(new Set(answers)),
    );
  },
  "files of an untrusted project": async ({ client, home }) => {
    const folder = path.join(home.work, "hostile", ".kinfold", "agents");
    mkdirSync(folder, { recursive: true });
    spawnSync("mkfifo", [path.join(folder, "fifo.md")]);
    if (!existsSync(path.join(folder, "zero.md"))) symlinkSync("/dev/zero", path.join(folder, "zero.md"));
    for (let n = 0; n < 500; n += 1) writeFileSync(path.join(folder, `${n}.md`), "x".repeat(100_000));
    const start = { agent: "busy", cwd: path.join(home.work, "hostile"), prompt: "x" };
    await assert.rejects(client.create({ ...start, profile: "fifo" }), {
      code: /untrusted_project|unknown_profile/,
    });
    await client.create(start);
  },
  "a prompt of characters that open a terminal sequence": async ({ client, home }) => {
    const prompt = `${"\u009d".repeat(60_000)}${"\u001b]".repeat(30_000)}<${" ".repeat(60_000)}`;
    const { session } = await client.create({ agent: "busy", cwd: home.work, prompt });
    await client.transcript({ id: session.id });
    await client.spawn({ id: session.id, agent: "busy", prompt });
  },
  "bodies of 250,000 keys and of 3,000 levels": async ({ home }) => {
    const keys = Array.from({ length: 250_000 }, (_, n) => `"k${n}":0`).join(",");
    for (const body of [`{${keys}}`, `{"prompt":"x","limits":${"[".repeat(3_000)}${"]".repeat(3_000)}}`]) {
      assert.equal(await post(home, "/api/sessions", body), 400);
    }
  },
  "two hundred new connections": async ({ home }) => {
    await Promise.all(Array.from({ length: 200 }, () => post(home, "/api/sessions/none/detach", "{}")));
  },
};

/** Words that precede secrets and must each be checked; as many as a prompt may contain. */
const HINTS = "password: curl -u ".repeat(58_254);

/** Long texts from a caller or an agent, through every entry point. */
export const LONG_TEXTS: Readonly<Record<string, Attack>> = {
  "a first prompt of 1 MB that looks like secrets": async ({ client, home }) => {
    const { session } = await client.create({ agent: "attack", cwd: home.work, prompt: HINTS });
    await client.waitFor(session.id);
    await client.transcript({ id: session.id });
  },
  "a child's prompt of 1 MB that looks like secrets": async ({ client, root }) => {
    const { session } = await client.spawn({ id: root, agent: "attack", prompt: HINTS });
    await client.waitFor(session.id);
  },
  "a tell of 1 MB that looks like secrets": async ({ client, home, root }) => {
    const { session } = await client.create({ agent: "attack", cwd: home.work, prompt: "begin" });
    await client.waitFor(session.id);
    await client.tell({ id: session.id, message: HINTS });
    await client.waitFor(session.id);
    // The root is in a turn, so this message waits in the inbox.
    await client.tell({ id: root, message: HINTS });
    await client.inbox({ id: root, all: false });
  },
  "an answer of 1 MB that looks like secrets": async ({ client, home }) => {
    const prompt = 'sim> tool ask_user_question {"questions":[{"question":"Which?"}]}';
    const { session } = await client.create({ agent: "sim", cwd: home.work, prompt });
    const asked = await eventually("it has asked", async () => {
      const { triggers } = await client.triggers({ id: session.id });
      return triggers.find((each) => each.status === "open");
    });
    await client.respond({ id: asked.id, answers: { q1: HINTS } });
    await client.waitFor(session.id);
    await client.triggers({ id: session.id });
  },
  "instructions of 100 KB that look like secrets": async ({ client, home }) => {
    const instructions = HINTS.slice(0, 100_000);
    const { session } = await client.create({ agent: "busy", cwd: home.work, prompt: "work", instructions });
    await client.cancel({ id: session.id });
  },
  "a payload of 256 KB that looks like secrets": async ({ client, home }) => {
    const { session } = await client.create({ agent: "attack", cwd: home.work, prompt: "begin" });
    await client.waitFor(session.id);
    const payload = { text: HINTS.slice(0, 250_000) };
    await client.fire({ id: session.id, type: "progress", payload, deliverAs: "followUp" });
    await client.waitFor(session.id);
  },
};

const TRIES = 3;

/** Fails at the first attack that blocks the main thread too long. */
export async function holdNobodyUp(
  attacks: Readonly<Record<string, Attack>>,
  tell: (text: string) => void,
): Promise<void> {
  await withFiftyAtWork(async (measure) => {
    for (const [what, attack] of Object.entries(attacks)) {
      let longestMs = Infinity;
      // Repeat the attack if the main thread was blocked too long. If the attack is the cause, this happens
      // every time. Garbage collection or a slow core causes it only sometimes.
      for (let left = TRIES; left > 0 && longestMs > STRETCH_MAX_MS; left -= 1) {
        const damage = await measure(what, attack);
        longestMs = Math.min(longestMs, damage.longestMs);
        const { longestMs: ms, slowness, wallMs } = damage;
        const all = `all of it ${(wallMs / 1000).toFixed(1)} s; slowness ${slowness.toFixed(1)}`;
        tell(`${what}: ${ms.toFixed(0)} ms (${all})`);
      }
      assert.ok(
        longestMs <= STRETCH_MAX_MS,
        `${what}: a stretch of ${longestMs} ms in each of ${TRIES} tries`,
      );
    }
  });
}

/** Runs a daemon with fifty working sessions. It records each long time that its main thread is blocked. */
export async function withFiftyAtWork(
  run: (measure: (what: string, attack: Attack) => Promise<Damage>) => Promise<void>,
): Promise<void> {
  const home = new TestHome({ yaml: YAML });
  const stretches = path.join(home.home, "stretches");
  const measureSlowness = async (): Promise<number> => {
    const known = slownessesIn(stretches).length;
    home.signal("SIGUSR2");
    return eventually("the yardstick is measured", async () => slownessesIn(stretches)[known]);
  };
  try {
    const client = await home.start({ env: { KINFOLD_TEST_STRETCHES: stretches } });
    const ground = { home, client, root: await fiftyAtWork(client, home) };
    await run(async (what, attack) => {
      // The first run also compiles code and is not measured.
      await attack(ground);
      const slownessBefore = await measureSlowness();
      const since = Date.now();
      await attack(ground);
      const wallMs = Date.now() - since;
      const { sessions } = await client.children({ id: ground.root });
      const child = sessions.find((each) => each.status === "running");
      assert.deepEqual((await client.cancel({ id: child?.id ?? "" })).left, []);
      const slowness = Math.max(slownessBefore, await measureSlowness());
      return { what, longestMs: longestStretch(stretches, since) / slowness, slowness, wallMs };
    });
  } finally {
    await home.close();
  }
}

async function fiftyAtWork(client: Client, home: TestHome): Promise<string> {
  const { session: root } = await client.create({ agent: "busy", cwd: home.work, prompt: "work" });
  for (let n = 1; n < AT_WORK; n += 1)
    await client.spawn({ id: root.id, agent: "busy", prompt: `work ${n}` });
  await eventually("all are at work", async () => (await client.health()).counts.running >= AT_WORK);
  return root.id;
}

/** Resolves to the status of a request over a new connection. */
function post(home: TestHome, address: string, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${home.token}`,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      connection: "close",
    };
    const asked = request(home.url + address, { method: "POST", headers, agent: false }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode ?? 0));
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

function beside(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}
