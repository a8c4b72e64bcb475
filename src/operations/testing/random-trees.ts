import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import type { z } from "zod";
import {
  type AskOf,
  type Budget,
  type Caller,
  Config,
  OPERATIONS,
  type OperationName,
  type OutputOf,
  type Permission,
  type Profile,
  Refusal,
} from "../../contract/index.ts";
import { createFakeDriver } from "../../drivers/fake/driver.ts";
import { claim } from "../../engine/turn/claim.ts";
import type { EngineDeps } from "../../engine/deps.ts";
import { silentLog } from "../../log.ts";
import { openStore } from "../../store/open.ts";
import type { SessionRecord, Store } from "../../store/port/store.ts";
import {
  type CallerContext,
  createGate,
  createOperations,
  type Gate,
  type OperationDeps,
  type Operations,
} from "../index.ts";
import { NO_CEILING } from "../deps.ts";
import { contextOf } from "../gate.ts";

/** The real store and operations in this process; turns are claimed but no agent runs. */
export interface World {
  readonly store: Store;
  readonly operations: Operations;
  readonly gate: Gate;
  /** The folder that every session works in. `inside` is a folder within it, `outside` is not. */
  readonly folder: string;
  readonly inside: string;
  readonly outside: string;
  setProfiles(profiles: readonly Profile[]): void;
  /** Returns the caller with its current rights, as the gate would. */
  known(caller: Caller): Promise<CallerContext>;
  ask<N extends OperationName>(name: N, caller: Caller, input: AskOf<N>): Promise<OutputOf<N>>;
  /** Returns the refusal, or null if the call succeeded. A bug is thrown. */
  refused<N extends OperationName>(name: N, caller: Caller, input: AskOf<N>): Promise<Refusal | null>;
  /**
   * Takes the first message of the inbox into a turn, as the engine does. Returns the turn's token and the
   * text that the engine would send.
   */
  take(id: string): Promise<{ token: string | null; fence: number; text: string } | null>;
  session(id: string): Promise<SessionRecord>;
  /** Returns a value that changes with every durable change of these trees. */
  changes(roots: readonly string[]): Promise<string>;
  /** Advances the clock of the operations. */
  skip(ms: number): void;
  close(): Promise<void>;
}

export const PERSON: Caller = { kind: "person", id: "person", name: "you" };
export const SCOPES = ["default", "team", "lab"] as const;
export const TOOLS = ["Read", "Grep", "Bash", "Edit"] as const;
/** Kinfold's tools, in both spellings. */
export const OUR_TOOLS = [
  "spawn_session",
  "subagent",
  "mcp__kinfold__tell_child",
  "ask_user_question",
  "mcp__kinfold",
] as const;
const ANY_TOOL = fc.constantFrom(...TOOLS, ...OUR_TOOLS);
const MODES = ["read-only", "ask", "workspace", "full"] as const satisfies readonly Permission[];
const ROOM = {
  depthMax: 50,
  childrenMax: 1_000,
  sessionsMax: 10_000,
  spawnsPerMinuteMax: 10_000,
  spawnsMax: 100_000,
};

/** No agent runs in these tests. */
const NO_AGENTS: Pick<EngineDeps, "usageFiles" | "reaper" | "toolsUrl" | "messageFolder"> = {
  usageFiles: { covers: () => false, total: async () => null, forget: () => undefined },
  reaper: { reap: async () => ({ killed: [], left: [] }) },
  toolsUrl: () => null,
  messageFolder: "",
};

export async function openWorld(more: Partial<z.input<typeof Config>> = {}): Promise<World> {
  const { home, ...folders } = makeFolders();
  const config = Config.parse({ agent: "fake", limits: ROOM, ...more });
  const paths = { database: path.join(home, "kinfold.db") };
  const store = await openStore({ config, paths, boot: randomUUID(), log: silentLog, searchMs: 10_000 });
  const driver = createFakeDriver();
  await store.nodes.register([await driver.probe()]);
  let skippedMs = 0;
  let profiles: readonly Profile[] = [aProfile({})];
  const deps: OperationDeps & EngineDeps = {
    store,
    config,
    log: silentLog,
    now: () => Date.now() + skippedMs,
    reached: () => undefined,
    address: () => "http://127.0.0.1:4680",
    privateFolders: [home],
    rolloutPath: () => path.join(home, "rollout"),
    rolloutFolder: home,
    profiles: () => ({ profiles, untrusted: [], problems: [] }),
    projectCeiling: async () => NO_CEILING,
    readers: async () => [],
    userHome: { home: "/nowhere", env: {} },
    version: "0.0.0",
    startedAt: 0,
    drivers: new Map([["fake", driver]]),
    ...NO_AGENTS,
  };
  const operations = createOperations(deps);
  const ask: World["ask"] = async (name, caller, input) => {
    const run = operations[name] as (...given: unknown[]) => Promise<never>;
    const call = { signal: new AbortController().signal, callId: null };
    return run(await knownIn(deps, caller), OPERATIONS[name].input.parse(input), call);
  };
  const session = async (id: string): Promise<SessionRecord> => (await store.read.sessions.byId(id))!;
  const refused: World["refused"] = async (name, caller, input) => {
    try {
      await ask(name, caller, input);
      return null;
    } catch (error) {
      if (error instanceof Refusal) return error;
      throw error;
    }
  };
  return {
    store,
    operations,
    gate: createGate(deps),
    ...folders,
    setProfiles: (more) => {
      profiles = [aProfile({}), ...more];
    },
    known: (caller) => knownIn(deps, caller),
    ask,
    refused,
    take: async (id) => {
      const taken = await claim(deps, await session(id), null);
      return taken === null ? null : { token: taken.lease.token, fence: taken.lease.fence, text: taken.text };
    },
    session,
    changes: (roots) => changesOf(store, roots),
    skip: (ms) => {
      skippedMs += ms;
    },
    close: async () => {
      await store.close();
      for (const each of [home, folders.folder, folders.outside]) rmSync(each, GONE);
    },
  };
}

const GONE = { recursive: true, force: true } as const;

function makeFolders(): Pick<World, "folder" | "inside" | "outside"> & { home: string } {
  const home = mkdtempSync(path.join(tmpdir(), "kinfold-authority-"));
  const folder = mkdtempSync(path.join(tmpdir(), "kinfold-work-"));
  const inside = mkdtempSync(path.join(folder, "inside-"));
  const outside = mkdtempSync(path.join(tmpdir(), "kinfold-other-"));
  return { home, folder, inside, outside };
}

async function changesOf(store: Store, roots: readonly string[]): Promise<string> {
  const trees = await Promise.all(roots.map((id) => store.read.trees.byId(id)));
  const all = await store.read.sessions.list({ visible: "all", limit: 10_000 });
  const keys = await store.read.tokens.outside();
  const revoked = keys.filter((key) => key.revokedAt !== null).length;
  return JSON.stringify([trees.map((tree) => tree?.seq), all.length, keys.length, revoked]);
}

export function aProfile(change: Partial<Profile>): Profile {
  return {
    name: "default",
    description: "",
    instructions: "",
    agent: null,
    model: null,
    permission: null,
    tools: null,
    disallowedTools: [],
    mcp: null,
    limits: {},
    inherit: null,
    callback: {},
    accepts: [],
    maxTurns: null,
    from: "built in",
    ...change,
  };
}

export interface Planned {
  /** Index of the parent among the earlier sessions; not used for a root. */
  readonly parent: number;
  readonly isRoot: boolean;
  readonly scope: (typeof SCOPES)[number];
  readonly isNamed: boolean;
  readonly profile: "default" | "listener";
  readonly asks: boolean;
  readonly fate: "lives" | "detached" | "ended";
}

/** Up to nine sessions in a few trees of three scopes. Some ask questions, are detached or have ended. */
export const someTrees: fc.Arbitrary<Planned[]> = fc.array(
  fc.record({
    parent: fc.nat(8),
    isRoot: fc.boolean(),
    scope: fc.constantFrom(...SCOPES),
    isNamed: fc.boolean(),
    profile: fc.constantFrom("default" as const, "listener" as const),
    asks: fc.boolean(),
    fate: fc.oneof(
      { weight: 6, arbitrary: fc.constant("lives" as const) },
      { weight: 1, arbitrary: fc.constant("detached" as const) },
      { weight: 1, arbitrary: fc.constant("ended" as const) },
    ),
  }),
  { minLength: 2, maxLength: 9 },
);

/** A session as the test's oracle knows it. */
export interface Node {
  readonly id: string;
  readonly rootId: string;
  readonly parent: Node | null;
  readonly scope: string;
  readonly accepts: readonly string[];
  readonly triggerId: string | null;
  readonly caller: Caller & { kind: "session" };
  isDetached: boolean;
  isEnded: boolean;
}

async function knownIn(deps: OperationDeps, caller: Caller): Promise<CallerContext> {
  const self = caller.kind === "session" ? await deps.store.read.sessions.byId(caller.id) : null;
  return contextOf(deps, caller, self);
}

/** Builds the planned trees through the operations themselves. */
export async function plant(world: World, plan: readonly Planned[]): Promise<Node[]> {
  world.setProfiles([aProfile({ name: "listener", accepts: ["ci.done"] })]);
  const nodes: Node[] = [];
  for (const [index, each] of plan.entries()) {
    const parent = index === 0 || each.isRoot ? null : nodes[each.parent % index]!;
    nodes.push(await plantOne(world, each, parent));
  }
  for (const [index, { fate }] of plan.entries()) {
    const node = nodes[index]!;
    if (fate === "detached" && node.parent !== null) {
      await world.ask("detach", PERSON, { id: node.id });
      node.isDetached = true;
    }
  }
  for (const [index, { fate }] of plan.entries()) {
    if (fate === "ended") await world.ask("cancel", PERSON, { id: nodes[index]!.id });
  }
  for (const node of nodes) node.isEnded = (await world.session(node.id)).endedAt !== null;
  return nodes;
}

async function plantOne(world: World, planned: Planned, parent: Node | null): Promise<Node> {
  const start = {
    prompt: "work",
    cwd: world.folder,
    profile: planned.profile,
    // The same name in every scope, so that a lookup that crosses scopes is noticed.
    ...(planned.isNamed ? { name: "twin" } : {}),
  };
  const made =
    parent === null
      ? await world.ask("create", PERSON, { ...start, scope: planned.scope })
      : await world.ask("spawn", PERSON, { ...start, name: undefined, id: parent.id });
  const { id, rootId, scope } = made.session;
  const caller = { kind: "session", id, rootId, fence: 0 } as const;
  await world.store.write(rootId, async (tx) => {
    const body = { text: `work of ${scope}` };
    const entry = {
      turnId: null,
      author: "agent",
      kind: "text",
      body,
      isSubagent: false,
      at: Date.now(),
    } as const;
    await tx.entries.append(id, [entry]);
  });
  const question = { questions: [{ question: "Which?" }], capMs: 0 };
  const triggerId = planned.asks ? (await world.ask("ask", caller, question)).triggerId : null;
  const accepts = planned.profile === "listener" ? ["ci.done"] : [];
  return { id, rootId, parent, scope, accepts, triggerId, caller, isDetached: false, isEnded: false };
}

/** Returns whether `node` is a descendant of `above` without a detached session in between. */
export function isBelow(node: Node, above: Node): boolean {
  if (node.parent === null || node.isDetached) return false;
  return node.parent === above || isBelow(node.parent, above);
}

/** Everything that a start may request. */
export interface Wanted {
  readonly permission: Permission | undefined;
  readonly tools: string[] | undefined;
  readonly limits: Budget;
  readonly profile: Profile;
  readonly place: "folder" | "inside" | "outside";
  readonly route: "spawn" | "by-root" | "by-person" | "subagent" | "chain";
}

const someTools = fc.option(fc.uniqueArray(ANY_TOOL, { maxLength: 4 }), { nil: undefined });
const someLimits: fc.Arbitrary<Budget> = fc
  .record(
    {
      usd: fc.integer({ min: 1, max: 20 }),
      tokens: fc.integer({ min: 1_000, max: 900_000 }),
      turns: fc.integer({ min: 1, max: 40 }),
      minutes: fc.integer({ min: 5, max: 600 }),
    },
    { requiredKeys: [] },
  )
  .map((limits) => limits);

export const somethingWanted: fc.Arbitrary<Wanted> = fc.record({
  permission: fc.option(fc.constantFrom(...MODES), { nil: undefined }),
  tools: someTools,
  limits: someLimits,
  place: fc.constantFrom("folder" as const, "inside" as const, "outside" as const),
  route: fc.constantFrom(
    "spawn" as const,
    "by-root" as const,
    "by-person" as const,
    "subagent" as const,
    "chain" as const,
  ),
  profile: fc
    .record({
      permission: fc.option(fc.constantFrom(...MODES), { nil: null }),
      tools: fc.option(fc.uniqueArray(ANY_TOOL, { maxLength: 4 }), { nil: null }),
      disallowedTools: fc.uniqueArray(ANY_TOOL, { maxLength: 2 }),
      limits: someLimits,
      maxTurns: fc.option(fc.integer({ min: 1, max: 40 }), { nil: null }),
    })
    .map((change) => aProfile({ ...change, name: "odd" })),
});
