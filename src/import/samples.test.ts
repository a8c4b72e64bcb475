import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import * as fs from "node:fs/promises";
import path from "node:path";
import { describe, it, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import type { AgentStatus, HistoryItem } from "../contract/index.ts";
import { historyReaders } from "../history/index.ts";
import { layRecorded } from "../history/readers/opencode/testing/session.ts";
import type { HistoryReader } from "../history/port.ts";
import { systemProbe } from "../system/process-probe.ts";
import { discoverAll, readAll } from "../history/reader.spec.ts";
import { judgeTree } from "../history/state/trees.ts";
import { treesOf } from "../history/testing/trees.ts";
import { folder, type Importing, startImporting } from "./testing/home.ts";

const withSamples = historyReaders.filter(({ format }) => existsSync(samplesOf(format)));

function samplesOf(format: string): string {
  return fileURLToPath(new URL(`../history/readers/${format}/testing/fixtures`, import.meta.url));
}

async function lay(home: string): Promise<void> {
  for (const { format, roots } of withSamples) {
    const root = roots({ home, env: {} })[0] as string;
    await fs.mkdir(root, { recursive: true });
    // The OpenCode sample consists of rows from a real database; a new database is built from them here.
    if (format === "opencode") layRecorded(path.join(root, "opencode.db")).close();
    else await fs.cp(samplesOf(format), root, { recursive: true });
  }
}

async function importSamples(t: TestContext): Promise<Importing> {
  const home = folder(t, "kinfold-agents-");
  await lay(home);
  const importing = await startImporting(t, { agents: home });
  await importing.import();
  return importing;
}

/** Returns what the readers themselves say about a root, without the importer. */
async function judgedDirectly(reader: HistoryReader, root: string) {
  const found = await discoverAll(reader, root);
  const read = await Promise.all(
    found.map(async (each) => ({ found: each, state: (await readAll(reader, each)).state })),
  );
  const listed = await reader.live(root, systemProbe);
  // The files were written a moment ago.
  const known = { listed, isRecent: true };
  return treesOf(read).map((tree) => ({ tree, family: judgeTree(reader, tree, known) }));
}

describe("what agents left on disk, through the API", () => {
  for (const reader of withSamples) {
    it(`every recorded session of ${reader.agent} has its tree and its state`, async (t) => {
      const importing = await importSamples(t);
      const { projects } = await importing.client.projects({});
      const root = reader.roots({ home: importing.agents, env: {} })[0] as string;
      const families = await judgedDirectly(reader, root);
      assert.ok(families.length > 0);
      for (const { tree, family } of families) {
        if (tree.root === null) continue;
        const top = await importing.byAgentId(tree.root.facts.id);
        assert.equal(top.evidence.state, family.judgement?.state);
        assert.equal(top.evidence.reason, family.judgement?.reason);
        const project = projects.find(({ cwd }) => cwd === top.cwd);
        const input = { projectId: project?.id ?? "", sessionId: tree.root.facts.id };
        const answer = await importing.client.projectSession(input);
        const expected = family.agents.map(({ status }) => [status.agentId, status] as const);
        assert.deepEqual(answer.agentStatuses, Object.fromEntries(expected));
        await checkLinks(importing, answer.session.id, {
          statuses: answer.agentStatuses,
          ids: answer.sessionIds,
        });
      }
    });
  }

  it("sub-agents are counted beside sessions, not among them", async (t) => {
    const importing = await importSamples(t);
    const { scan } = await importing.client.imported({});
    const sessions = await importing.sessions();
    for (const { agent, ...counted } of scan.found) {
      const own = sessions.filter((session) => session.agent === agent);
      const below = own.filter(({ parentId }) => parentId !== null).length;
      assert.deepEqual([agent, counted.subagents], [agent, below]);
      assert.deepEqual([agent, counted.sessions], [agent, own.length - below]);
    }
  });

  it("a call and the sub-agents it started are linked both ways", async (t) => {
    const importing = await importSamples(t);
    const { projects } = await importing.client.projects({});
    const linked: string[] = [];
    for (const { id } of projects) {
      const inProject = (await importing.sessions()).filter(({ parentId }) => parentId === null);
      for (const session of inProject) {
        // The request fails if the session belongs to another project.
        const answer = await importing.client
          .projectSession({ projectId: id, sessionId: session.id, limit: 1000 })
          .catch(() => null);
        if (answer === null) continue;
        for (const [callId, agentIds] of Object.entries(answer.calls)) {
          for (const agentId of agentIds) assert.equal(answer.agentStatuses[agentId]?.toolUseId, callId);
          const call: HistoryItem | undefined = answer.page.items.find(
            ({ kind, body }) => kind === "toolCall" && body.callId === callId,
          );
          const isDeep = answer.agentStatuses[agentIds[0] ?? ""]?.depth !== 1;
          if (isDeep) continue;
          assert.deepEqual(call?.agentIds, agentIds, `${callId} is in the session's own page`);
          linked.push(callId);
        }
      }
    }
    assert.ok(linked.length >= 8);
  });

  it("a sub-agent's conversation comes page by page from its end", async (t) => {
    const importing = await importSamples(t);
    const { projects } = await importing.client.projects({});
    for (const session of (await importing.sessions()).filter(({ parentId }) => parentId === null)) {
      const projectId = projects.find(({ cwd }) => cwd === session.cwd)?.id ?? "";
      const { agentStatuses } = await importing.client.projectSession({ projectId, sessionId: session.id });
      for (const agentId of Object.keys(agentStatuses)) {
        const asked = { projectId, sessionId: session.id, agentId };
        const whole = await importing.client.projectAgent({ ...asked, limit: 1000 });
        if (whole.session === null) continue;
        const paged: string[] = [];
        for (let cursor: string | null | undefined; cursor !== null;) {
          const more: { cursor?: string } = cursor === undefined ? {} : { cursor };
          const { page } = await importing.client.projectAgent({ ...asked, limit: 2, ...more });
          paged.unshift(...page.items.map(({ ref }) => ref));
          cursor = page.cursor;
        }
        assert.deepEqual(
          paged,
          whole.page.items.map(({ ref }) => ref),
        );
        const { entries } = await importing.client.entries({ id: whole.session.id, limit: 1000 });
        const told = entries.filter(({ author }) => author !== "daemon").map(({ body }) => body.text);
        assert.deepEqual(
          told,
          whole.page.items.map(({ body }) => body.text),
        );
      }
    }
  });

  it("nothing is written below the agents' own folders", async (t) => {
    const home = folder(t, "kinfold-agents-");
    await lay(home);
    const readOnly = await everyPath(home);
    for (const each of readOnly) await fs.chmod(each, (await fs.stat(each)).mode & 0o555);
    const before = await printOf(home);
    const importing = await startImporting(t, { agents: home });
    await importing.import();
    await importing.import();
    assert.ok((await importing.sessions()).length > 0);
    await importing.stop();
    assert.deepEqual(await printOf(home), before);
    for (const each of readOnly) await fs.chmod(each, 0o755);
  });

  it("another store gives the same ids, and a second import nothing new", async (t) => {
    const first = await importSamples(t);
    const ids = (await first.sessions()).map(({ id }) => id).toSorted();
    const counts = await countsOf(first);
    await first.import();
    assert.deepEqual(await countsOf(first), counts);
    const second = await startImporting(t, { agents: first.agents });
    await second.import();
    assert.deepEqual((await second.sessions()).map(({ id }) => id).toSorted(), ids);
    assert.deepEqual(await countsOf(second), counts);
  });

  it("what was read can be found", async (t) => {
    const importing = await importSamples(t);
    for (;;) {
      const { hits, isWhole } = await importing.client.search({ query: "PARENT-BACKGROUND", id: "all" });
      if (!isWhole) continue;
      assert.ok(hits.length > 0);
      return;
    }
  });
});

async function countsOf(importing: Importing): Promise<Record<string, number>> {
  const sessions = await importing.sessions();
  const counts = sessions.map(
    async ({ id }) => [id, (await importing.client.entries({ id })).total] as const,
  );
  return Object.fromEntries(await Promise.all(counts));
}

/** Checks that each sub-agent's session has the parent, depth and state from the sub-agent's status. */
async function checkLinks(
  importing: Importing,
  topId: string,
  family: { statuses: Record<string, AgentStatus>; ids: Record<string, string> },
): Promise<void> {
  const { sessions } = await importing.client.tree({ id: topId });
  const byId = new Map(sessions.map((session) => [session.id, session]));
  for (const [agentId, sessionId] of Object.entries(family.ids)) {
    const status = family.statuses[agentId] as AgentStatus;
    const session = byId.get(sessionId);
    assert.ok(session, `${agentId} is in the tree`);
    const above = status.parentAgentId === null ? topId : family.ids[status.parentAgentId];
    assert.equal(session.parentId, above);
    assert.equal(session.depth, status.depth);
    assert.equal(session.rootId, topId);
    assert.equal(session.evidence.state, status.state);
    assert.equal(session.spawnConfig["callId"], status.toolUseId);
    assert.equal(session.status === "running" || session.status === "waiting", isOpen(status));
  }
}

function isOpen({ state }: AgentStatus): boolean {
  return state === "running" || state === "waiting" || state === "pending";
}

async function everyPath(root: string): Promise<string[]> {
  const names = await fs.readdir(root, { recursive: true });
  return names.map((name) => path.join(root, name)).toSorted((a, b) => b.length - a.length);
}

/** Returns the names, sizes, times, modes and contents of everything below a folder. */
async function printOf(root: string): Promise<Record<string, string>> {
  const prints: Record<string, string> = {};
  for (const each of await everyPath(root)) {
    const { mode, size, mtimeMs, ctimeMs } = await fs.stat(each);
    const isFile = (await fs.stat(each)).isFile();
    const hash = isFile
      ? createHash("sha256")
          .update(await fs.readFile(each))
          .digest("hex")
      : "";
    prints[each] = [mode, size, mtimeMs, ctimeMs, hash].join(" ");
  }
  return prints;
}
