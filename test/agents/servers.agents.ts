import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { allQuiet } from "../support/family.ts";
import { isCached } from "./support/cache.ts";
import type { ProgramName } from "./support/cache.ts";
import { AGENT_MS, Stage } from "./support/stage.ts";

const SERVER = fileURLToPath(new URL("./support/other-server.ts", import.meta.url));
const command = (name: string) => ({ command: process.execPath, args: [SERVER, name] });
const both = () => ({ wanted: command("wanted"), unwanted: command("unwanted") });

/** Adds two MCP servers to the agent's configuration, as a person would. */
const CONFIGURE: Partial<Record<ProgramName, (home: string) => void>> = {
  claude: (home) =>
    merge(path.join(home, ".claude", ".claude.json"), {
      mcpServers: both(),
      hasCompletedOnboarding: true,
    }),
  gemini: (home) => merge(path.join(home, ".gemini", "settings.json"), { mcpServers: both() }),
  opencode: (home) =>
    merge(path.join(home, ".config", "opencode", "opencode.json"), {
      mcp: Object.fromEntries(
        Object.keys(both()).map((name) => [
          name,
          { type: "local", command: [process.execPath, SERVER, name], enabled: true },
        ]),
      ),
    }),
};

for (const [agent, configure] of Object.entries(CONFIGURE) as [ProgramName, (home: string) => void][]) {
  const skip = isCached(agent) ? false : `${agent} is not in the cache: npm run test:agents`;
  describe(`${agent}, with MCP servers of the person's own`, { skip, concurrency: false }, () => {
    const offered = async (profile: string, head: string): Promise<string[]> => {
      const stage = await Stage.open([agent], [{ name: "held", on: /HELD/, steps: [{ say: "done" }] }]);
      try {
        configure(stage.home.work);
        const folder = path.join(stage.home.home, "profiles");
        mkdirSync(folder, { recursive: true });
        const text = `---\nname: ${profile}\ndescription: for this test\n${head}---\nDo it.\n`;
        writeFileSync(path.join(folder, `${profile}.md`), text);
        const client = await stage.start();
        const { session } = await client.create({
          agent,
          profile,
          cwd: stage.project,
          permission: "full",
          prompt: "HELD: do your part",
        });
        await allQuiet(client, session.id, AGENT_MS);
        const { tools, messages } = await stage.asked("held");
        return [...tools, ...messages.map((message) => message.text)];
      } finally {
        await stage.close();
      }
    };
    const holds = (tools: readonly string[], text: string): boolean =>
      tools.some((tool) => tool.includes(text));

    it("has them all where its profile says nothing", { timeout: 3 * AGENT_MS }, async () => {
      const tools = await offered("open", "");
      assert.deepEqual([holds(tools, "unwanted_lookup"), holds(tools, "spawn_session")], [true, true]);
    });

    it("has none of them where its profile names none", { timeout: 3 * AGENT_MS }, async () => {
      const tools = await offered("alone", "mcp: []\n");
      assert.deepEqual([holds(tools, "wanted_lookup"), holds(tools, "spawn_session")], [false, true]);
    });

    const all = agent === "claude" ? "Claude Code starts all of the person's servers or none" : false;
    it("has those alone that its profile names", { timeout: 3 * AGENT_MS, skip: all }, async () => {
      const tools = await offered("linked", "mcp: [wanted]\n");
      assert.ok(holds(tools, "spawn_session"));
      assert.deepEqual(
        ["wanted_wanted_lookup", "unwanted_lookup"].map((name) => holds(tools, name)),
        [true, false],
      );
    });
  });
}

function merge(file: string, more: object): void {
  mkdirSync(path.dirname(file), { recursive: true });
  let before = {};
  try {
    before = JSON.parse(readFileSync(file, "utf8")) as object;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  writeFileSync(file, JSON.stringify({ ...before, ...more }));
}
