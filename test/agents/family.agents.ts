import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { describe, it } from "node:test";
import { allQuiet, callbacksTo, checkInvariants } from "../support/family.ts";
import type { Rule } from "./model/script.ts";
import { missing } from "./support/cache.ts";
import { AGENT_MS, Stage, timesTold } from "./support/stage.ts";

const LIMIT = { timeout: 4 * AGENT_MS };

const spawn = (name: string, agent: string) => ({
  call: { tool: "spawn_session", input: { name, agent, prompt: `${name}-WORK: do your part.` } },
});

describe("a family of several vendors", { skip: missing("claude", "codex", "gemini") }, () => {
  it(
    "tells a Claude parent the results of its Codex and its Gemini child, each exactly once",
    LIMIT,
    async () => {
      const stage = await Stage.open(
        ["claude", "codex", "gemini"],
        [
          { name: "one", on: /Child "one"/, steps: [{ say: "one is noted" }] },
          { name: "two", on: /Child "two"/, steps: [{ say: "two is noted" }] },
          { name: "codex child", on: /one-WORK/, steps: [{ say: "RESULT-OF-CODEX" }] },
          { name: "gemini child", on: /two-WORK/, steps: [{ say: "RESULT-OF-GEMINI" }] },
          {
            name: "parent",
            on: /RAISE/,
            steps: [spawn("one", "codex"), spawn("two", "gemini"), { say: "both are at work" }],
          },
        ],
      );
      try {
        const client = await stage.start();
        const root = await stage.root(client, "claude", "RAISE two children");
        const sessions = await allQuiet(client, root.id, 2 * AGENT_MS);
        assert.deepEqual(
          sessions.map((each) => [each.name, each.agent, each.outcome]),
          [
            ["root", "claude", "completed"],
            ["one", "codex", "completed"],
            ["two", "gemini", "completed"],
          ],
        );
        assert.equal((await callbacksTo(client, root.id)).length, 2);
        await checkInvariants(client, root.id);
        const last = stage.model.asked.findLast((one) => one.rule === "one" || one.rule === "two")!;
        assert.equal(last.api, "anthropic");
        assert.equal(timesTold(last, "RESULT-OF-CODEX"), 1);
        assert.equal(timesTold(last, "RESULT-OF-GEMINI"), 1);
        assert.deepEqual(
          stage.model.asked
            .filter((one) => one.rule.endsWith(" child"))
            .map((one) => [one.rule, one.api])
            .sort(),
          [
            ["codex child", "responses"],
            ["gemini child", "gemini"],
          ],
        );
      } finally {
        await stage.close();
      }
    },
  );
});

const SECRET = "the-content-of-a-file-that-nobody-asked-for";

/** Returns every notation with which a prompt makes Claude Code or Gemini CLI read a file. */
function mentions(file: string): string {
  const name = path.basename(file);
  return [
    `see @${name}`,
    `see @${file}`,
    `\`\`\`\n@${file}\n\`\`\``,
    `> @${file} is quoted`,
    `<resource>@${file}</resource> and "@${name}" and (@${name})`,
  ].join("\n");
}

for (const agent of ["claude", "gemini"] as const) {
  describe(`a path in what a child wrote`, { skip: missing(agent) }, () => {
    it(`makes no ${agent} parent read a file: not in a result, a question or an event`, LIMIT, async () => {
      const stage = await Stage.open([agent], []);
      try {
        const file = path.join(stage.project, "secret.txt");
        writeFileSync(file, `${SECRET}\n`);
        const text = mentions(file);
        stage.model.play(forging(text));
        const client = await stage.start();
        const root = await stage.root(client, agent, "RAISE a child");
        await allQuiet(client, root.id, 2 * AGENT_MS);
        for (const [what, words] of Object.entries(ARRIVED)) {
          const told = stage.model.asked.find((one) => timesTold(one, words) > 0);
          assert.ok(told !== undefined && timesTold(told, "secret.txt") > 0, `the ${what} arrived`);
        }
        assert.ok(timesTold(await stage.asked("result"), "secret.txt") > 0, "the result arrived");
        const isTold = (): boolean =>
          JSON.stringify(stage.model.asked.map((one) => one.messages)).includes(SECRET);
        assert.equal(isTold(), false);
        if (agent !== "claude") return;
        // The same text from a person is expanded. This proves that our escape before the `@` prevented the
        // expansion above.
        await client.prompt({ id: root.id, prompt: text });
        await allQuiet(client, root.id, AGENT_MS);
        assert.equal(isTold(), true);
      } finally {
        await stage.close();
      }
    });
  });
}

const ARRIVED = { event: '"progress" from', question: "asks and waits" };

/** Scripts a child that puts the text into everything it can send to its parent. */
function forging(text: string): Rule[] {
  const answer = { tool: "respond_to_trigger", input: { triggerId: "${trigger}", response: "go on" } };
  // One message to the parent may contain the event and the question, so find the id of the question.
  const capture = { trigger: /<!-- trigger:(\w+) -->\n[^\n]* asks and waits/ };
  return [
    { name: "result", on: /\[Kinfold\] Child "kid" .* completed/, steps: [{ say: "noted" }] },
    { name: "question", on: /asks and waits/, capture, steps: [{ call: answer }, { say: "answered" }] },
    { name: "event", on: /"progress" from/, steps: [{ say: "seen" }] },
    {
      name: "child",
      on: /KID-WORK/,
      steps: [
        {
          call: { tool: "fire_trigger", input: { sessionId: "parent", type: "progress", payload: { text } } },
        },
        { call: { tool: "ask_user_question", input: { questions: [{ question: text }] } }, until: /go on/ },
        { say: text },
      ],
    },
    {
      name: "parent",
      on: /RAISE/,
      steps: [
        { call: { tool: "spawn_session", input: { name: "kid", prompt: "KID-WORK: do it" } } },
        { say: "it is at work" },
      ],
    },
  ];
}
