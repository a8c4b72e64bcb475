import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import type { Permission } from "../../contract/index.ts";
import { closeRound } from "../../kernel/round.ts";
import type { SessionRecord } from "../../store/port/store.ts";
import {
  aProfile,
  openWorld,
  PERSON,
  somethingWanted,
  TOOLS,
  type Wanted,
  type World,
} from "../testing/random-trees.ts";
import { withheldFrom } from "../../domain/permission.ts";
import { checkProperty } from "../../testing/seeds.ts";

const RUNS = Number(process.env["KINFOLD_TEST_RUNS"] ?? 60);
let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.close());

const RANK: Readonly<Record<Permission, number>> = { "read-only": 0, ask: 1, workspace: 2, full: 3 };
const UNITS = ["usd", "tokens", "turns", "minutes"] as const;
const EXPECTED = new Set([
  "permission_too_wide",
  "over_budget",
  "cannot_meter",
  "invalid_input",
  "tool_not_given",
]);

describe("a child, by every way it can be started", () => {
  it("is never allowed more than its parent: mode, folder, tools, scope and budget", async () => {
    await checkProperty(
      import.meta.filename,
      fc.asyncProperty(
        somethingWanted,
        fc.array(fc.tuple(fc.nat(5), somethingWanted), { minLength: 1, maxLength: 6 }),
        fc.constantFrom("default", "team"),
        async (first, rest, scope) => {
          const root = await begin(first, scope);
          if (root === null) return;
          const all = [root];
          for (const [at, wanted] of rest) {
            const parent = all[at % all.length]!;
            for (const child of await start(wanted, parent, root)) {
              assertNarrower(child, await world.session(parent.id), wanted);
              all.push(child);
            }
          }
        },
      ),
      { numRuns: RUNS },
    );
  });

  it("keeps what its profile forbids, also where neither it nor its parent has a list of tools", async () => {
    world.setProfiles([aProfile({ name: "odd", disallowedTools: ["Bash"] })]);
    const { session } = await world.ask("create", PERSON, { prompt: "x", cwd: world.folder, profile: "odd" });
    const caller = { kind: "session", id: session.id, rootId: session.id, fence: 0 } as const;
    const child = await world.ask("spawn", caller, { id: session.id, prompt: "y", profile: "default" });
    for (const { id } of [session, child.session]) {
      const row = await world.session(id);
      assert.equal(allows(row, "Bash"), false);
      assert.equal(allows(row, "Read"), true);
    }
  });

  it("has none of Kinfold's tools that its parent lacks, whatever lists either has", async () => {
    world.setProfiles([
      aProfile({ name: "odd", tools: ["Read", "Grep"] }),
      aProfile({ name: "asker", tools: ["Read", "ask_user_question"] }),
    ]);
    const start = { prompt: "x", cwd: world.folder };
    const { session } = await world.ask("create", PERSON, {
      ...start,
      tools: ["Read", "spawn_session", "wait_session"],
    });
    const above = withheldFrom((await world.session(session.id)).effective);
    assert.ok(above.includes("tell_child"));
    for (const more of [{ tools: ["Read"] }, { profile: "odd" }, { profile: "asker" }, {}]) {
      const child = await world.ask("spawn", PERSON, { id: session.id, prompt: "y", ...more });
      const below = withheldFrom((await world.session(child.session.id)).effective);
      assert.deepEqual(
        above.filter((tool) => !below.includes(tool)),
        [],
        JSON.stringify(more),
      );
    }
    const refusal = await world.refused("spawn", PERSON, {
      id: session.id,
      prompt: "y",
      tools: ["Read", "mcp__kinfold__tell_child"],
    });
    assert.equal(refusal?.code, "permission_too_wide");
  });

  it("is refused a tool that its parent or its profile does not have, by name", async () => {
    const { session } = await world.ask("create", PERSON, {
      prompt: "x",
      cwd: world.folder,
      tools: ["Read"],
    });
    const refusal = await world.refused("spawn", PERSON, {
      id: session.id,
      prompt: "y",
      tools: ["Read", "Bash"],
    });
    assert.equal(refusal?.code, "permission_too_wide");
    assert.match(refusal.message, /Bash.*Allowed: Read/);
  });

  it("in a folder outside its parent's is asked where its parent is allowed inside its own", async () => {
    const { session } = await world.ask("create", PERSON, {
      prompt: "x",
      cwd: world.folder,
      permission: "workspace",
    });
    const spawn = { id: session.id, prompt: "y" };
    const inside = await world.ask("spawn", PERSON, { ...spawn, cwd: world.inside });
    assert.equal(inside.effective.permission, "workspace");
    const outside = await world.ask("spawn", PERSON, { ...spawn, cwd: world.outside });
    assert.equal(outside.effective.permission, "ask");
    const asked = { ...spawn, cwd: world.outside, permission: "workspace" } as const;
    assert.equal((await world.refused("spawn", PERSON, asked))?.code, "permission_too_wide");
  });

  it("of a chain is told how its own profile works", async () => {
    world.setProfiles([aProfile({ name: "odd", instructions: "Work oddly." })]);
    const { session } = await world.ask("create", PERSON, { prompt: "x", cwd: world.folder });
    const parent = await world.session(session.id);
    const tasks = [{ task: "one" }, { task: "two: {previous}", profile: "odd" }];
    const [, second] = await chain(parent, tasks);
    const taken = await world.take(second!.id);
    assert.match(taken?.text ?? "", /^two: <child-output[^]*Work oddly\./);
  });
});

async function begin(wanted: Wanted, scope: string): Promise<SessionRecord | null> {
  world.setProfiles([wanted.profile]);
  const { permission, tools, limits } = wanted;
  const input = { prompt: "x", cwd: world.folder, profile: "odd", permission, tools, limits, scope };
  const refusal = await world.refused("create", PERSON, input);
  if (refusal !== null) {
    assert.ok(EXPECTED.has(refusal.code), `${refusal.code}: ${refusal.message}`);
    return null;
  }
  const { session } = await world.ask("create", PERSON, input);
  return world.session(session.id);
}

/** Returns the sessions that were started: one child, two steps of a chain, or none after a refusal. */
async function start(wanted: Wanted, parent: SessionRecord, root: SessionRecord): Promise<SessionRecord[]> {
  world.setProfiles([wanted.profile]);
  const { permission, tools, limits, route } = wanted;
  const cwd = world[wanted.place];
  const callers = { spawn: callerOf(parent), "by-root": callerOf(root), "by-person": PERSON };
  try {
    if (route === "chain")
      return await chain(parent, [
        { task: "a", profile: "odd" },
        { task: "b", profile: "odd" },
      ]);
    if (route === "subagent") {
      const tasks = [{ task: "a", profile: "odd" }];
      const { results } = await world.ask("subagent", callerOf(parent), { tasks, capMs: 0 });
      return Promise.all(
        results.flatMap(({ sessionId }) => (sessionId === null ? [] : [world.session(sessionId)])),
      );
    }
    const input = { id: parent.id, prompt: "x", profile: "odd", cwd, permission, tools, limits };
    const { session } = await world.ask("spawn", callers[route], input);
    return [await world.session(session.id)];
  } catch (error) {
    const { code } = error as { code?: string };
    if (code !== undefined && EXPECTED.has(code)) return [];
    throw error;
  }
}

/** Starts both steps of a chain: the end of the first begins the second. */
async function chain(
  parent: SessionRecord,
  tasks: { task: string; profile?: string }[],
): Promise<SessionRecord[]> {
  await world.ask("subagent", callerOf(parent), { tasks, mode: "chain", capMs: 0 });
  const first = (await world.store.read.sessions.children(parent.id)).at(-1)!;
  await world.store.write(parent.rootId, async (tx) => {
    const row = (await tx.sessions.byId(first.id))!;
    await closeRound(tx, row, { outcome: "completed", reason: null, by: null, now: Date.now() });
  });
  const second = (await world.store.read.sessions.children(parent.id)).at(-1)!;
  assert.notEqual(second.id, first.id, "the chain goes on");
  return [first, second];
}

function assertNarrower(child: SessionRecord, parent: SessionRecord, wanted: Wanted): void {
  const [own, above] = [child.effective, parent.effective];
  const what = `${wanted.route}: ${JSON.stringify(own)} under ${JSON.stringify(above)}`;
  assert.equal(child.parentId, parent.id);
  assert.equal(child.depth, parent.depth + 1);
  assert.equal(child.scope, parent.scope, what);
  assert.ok(RANK[own.permission] <= RANK[above.permission], what);
  const isFree = own.permission === "workspace" && above.permission !== "full";
  assert.ok(!isFree || !path.relative(above.cwd, own.cwd).startsWith(".."), what);
  for (const tool of [...TOOLS, "Other"]) {
    if (!allows(child, tool)) continue;
    assert.ok(allows(parent, tool), `${tool} ${what}`);
    assert.ok(!wanted.profile.disallowedTools.includes(tool), `${tool} ${what}`);
    assert.ok(wanted.profile.tools?.includes(tool) ?? true, `${tool} ${what}`);
  }
  const given = withheldFrom(own);
  for (const tool of [...withheldFrom(above), ...withheldFrom(wanted.profile)]) {
    assert.ok(given.includes(tool), `${tool} ${what}`);
  }
  const { maxTurns, limits } = wanted.profile;
  for (const unit of UNITS) {
    const most = Math.min(above.limits[unit] ?? Infinity, limits[unit] ?? Infinity);
    assert.ok((own.limits[unit] ?? Infinity) <= most, `${unit} ${what}`);
  }
  if (maxTurns !== null) assert.ok((own.limits["turns"] ?? Infinity) <= maxTurns, what);
}

function allows({ effective }: SessionRecord, tool: string): boolean {
  if (effective.disallowedTools?.includes(tool)) return false;
  return effective.tools === null || effective.tools.includes(tool);
}

function callerOf(session: SessionRecord) {
  return { kind: "session", id: session.id, rootId: session.rootId, fence: session.fence } as const;
}
