import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { allQuiet, callbacksTo } from "../support/family.ts";
import { script, spawnStep } from "../support/script.ts";
import type { Step } from "./model/script.ts";
import { missing, type ProgramName } from "./support/cache.ts";
import { AGENT_MS, Stage } from "./support/stage.ts";
import { TOOLS } from "./support/tools.ts";

const LIMIT = { timeout: 4 * AGENT_MS };

/** Errors on which each program gives up soon. It retries other errors for minutes. */
const SOON: readonly {
  readonly agent: ProgramName;
  readonly step: (times: number) => Step;
  /** The number of requests that the program makes before it gives up. */
  readonly own: number;
  readonly words: RegExp;
}[] = [
  {
    agent: "claude",
    step: (times) => ({ error: { status: 529, message: "Overloaded", times } }),
    own: 3,
    words: /its provider is overloaded: "API Error: Repeated 529 Overloaded errors\./,
  },
  {
    agent: "codex",
    step: (times) => ({ error: { status: 429, message: "slow down", times } }),
    own: 1,
    words: /its provider is overloaded: "exceeded retry limit, last status: 429 Too Many Requests"/,
  },
];

for (const { agent, step, own, words } of SOON) {
  describe(`${agent}, whose provider is in trouble`, { skip: missing(agent), concurrency: false }, () => {
    it("is retried by Kinfold where it gave up, and does its task", LIMIT, async () => {
      const stage = await Stage.open(
        [agent],
        [{ name: "kid", on: /KID-WORK/, steps: [{ ...step(own), say: "DONE" }] }],
      );
      try {
        const { kid, text } = await raise(stage, agent, { KINFOLD_RETRY_MS: "200" });
        assert.equal(kid.outcome, "completed", kid.outcomeReason ?? "");
        assert.match(text, /completed/);
        assert.equal(stage.model.asked.filter((one) => one.rule === "kid").length, own + 1);
      } finally {
        await stage.close();
      }
    });

    it("goes on where it was after it had called a tool", LIMIT, async () => {
      const call = TOOLS[agent].shell("echo once >> made.txt");
      const on = /KID-WORK/;
      const steps = [{ say: "at work", call }, step(own)];
      const more = { name: "more", on: /your turn was cut/, steps: [{ say: "went on" }] };
      const stage = await Stage.open([agent], [more, { name: "kid", on, steps }]);
      try {
        const { kid } = await raise(stage, agent, { KINFOLD_RETRY_MS: "200" });
        assert.equal(kid.outcome, "completed", kid.outcomeReason ?? "");
        assert.equal(stage.model.asked.filter((one) => one.rule === "more").length, 1);
      } finally {
        await stage.close();
      }
    });

    it("fails when no retry is left, in the provider's own words", LIMIT, async () => {
      const stage = await Stage.open([agent], [{ name: "kid", on: /KID-WORK/, steps: [step(1_000)] }]);
      try {
        const { kid, text } = await raise(stage, agent, {
          KINFOLD_RETRY_MS: "200",
          KINFOLD_RETRIES_MAX: "1",
        });
        assert.equal(kid.outcome, "failed");
        assert.match(kid.outcomeReason ?? "", words);
        assert.match(text, /\(tried 2 times\)/);
        assert.match(text, /Such errors are temporary/);
        assert.doesNotMatch(text, /[{}]/);
      } finally {
        await stage.close();
      }
    });
  });
}

for (const [agent, signIn] of [
  ["codex", "run: codex login"],
  ["gemini", "run: gemini"],
] as const) {
  describe(`${agent}, not signed in`, { skip: missing(agent), concurrency: false }, () => {
    it("fails at once, and its parent is told how the user signs in", LIMIT, async () => {
      const error = { status: 401, message: "invalid x-api-key" };
      const stage = await Stage.open([agent], [{ name: "kid", on: /KID-WORK/, steps: [{ error }] }]);
      try {
        const { kid, text } = await raise(stage, agent, {});
        assert.match(kid.outcomeReason ?? "", /^not signed in to /);
        assert.ok(text.includes(`to sign in, ${signIn}`), text);
        assert.match(text, /Tell the user; do not spawn it again\./);
        assert.doesNotMatch(text, /[{}]/);
      } finally {
        await stage.close();
      }
    });
  });
}

async function raise(stage: Stage, agent: ProgramName, env: Record<string, string>) {
  const client = await stage.start(env);
  const child = { name: "kid", agent, prompt: "KID-WORK: do your part", permission: "full" };
  const { session: root } = await client.create({
    agent: "sim",
    cwd: stage.project,
    permission: "full",
    prompt: script(spawnStep(child)),
  });
  const [, kid] = await allQuiet(client, root.id, 2 * AGENT_MS);
  const callbacks = await callbacksTo(client, root.id);
  assert.equal(callbacks.length, 1);
  return { kid: kid!, text: callbacks[0]!.text };
}
