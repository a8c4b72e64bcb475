import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import {
  type AskOf,
  OPERATIONS,
  type OperationName,
  type OperationSpec,
  type TokenRight,
} from "../../contract/index.ts";
import {
  isBelow,
  type Node,
  openWorld,
  PERSON,
  plant,
  SCOPES,
  someTrees,
  type World,
} from "../testing/random-trees.ts";
import { checkProperty } from "../../testing/seeds.ts";

const RUNS = Number(process.env["KINFOLD_TEST_RUNS"] ?? 12);
let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.close());

interface Attempt {
  readonly name: OperationName;
  readonly input: Record<string, unknown>;
}

const attempt = <N extends OperationName>(name: N, input: AskOf<N>): Attempt => ({ name, input });

function reads({ id }: Node): Attempt[] {
  return [
    ...(
      ["get", "tree", "children", "turns", "entries", "transcript", "inbox", "triggers", "receipt"] as const
    ).map((name) => attempt(name, { id })),
    attempt("inbox", { id, all: true }),
    ...(["result", "transcript", "receipt"] as const).map((view) => attempt("inspect", { id, view })),
    attempt("list", { parent: id }),
    attempt("list", { root: id }),
    attempt("search", { query: "work", id }),
  ];
}

/** Operations that reach beyond a session's own family. */
const OF_THE_SCOPE: ReadonlySet<OperationName> = new Set(["list", "search"]);

/**
 * Every operation that acts on one session. `who` says which callers may use it. `below`: the session's
 * ancestors. `self`: its ancestors and itself. `fire`: its ancestors and its children. `accepted`: as `fire`,
 * and also sessions of the same scope if the session accepts the trigger's type.
 */
function acts(node: Node): (Attempt & { who: "below" | "self" | "fire" | "accepted" })[] {
  const { id } = node;
  const all = [
    { ...attempt("spawn", { id, prompt: "more" }), who: "self" as const },
    { ...attempt("checkpoint", { id, summary: "so far" }), who: "self" as const },
    { ...attempt("tell", { id, message: "hello" }), who: "below" as const },
    { ...attempt("cancel", { id, turnOnly: true }), who: "below" as const },
    { ...attempt("cancel", { id }), who: "below" as const },
    { ...attempt("wait", { id, timeoutMs: 0 }), who: "below" as const },
    { ...attempt("waitChildren", { ids: [id], timeoutMs: 0, capMs: 0 }), who: "below" as const },
    { ...attempt("fire", { id, type: "note", payload: {} }), who: "fire" as const },
    { ...attempt("fire", { id, type: "ci.done", payload: {} }), who: "accepted" as const },
  ];
  if (node.triggerId === null) return all;
  const { triggerId } = node;
  return [
    ...all,
    { ...attempt("escalate", { id: triggerId }), who: "below" as const },
    { ...attempt("respond", { id: triggerId, response: "yes" }), who: "below" as const },
  ];
}

function mayAct(who: "below" | "self" | "fire" | "accepted", by: Node, to: Node): boolean {
  if (isBelow(to, by)) return true;
  if (who === "below") return false;
  if (who === "self") return by === to;
  if (by.parent === to && !by.isDetached) return true;
  return who === "accepted" && by.scope === to.scope && to.accepts.includes("ci.done");
}

/** Codes that only say that the caller may not see or change the session. */
const NOT_YOURS = ["not_found", "not_a_child", "forbidden", "unknown_trigger", "wait_on_ancestor"];

const run = (name: OperationName, caller: Parameters<World["ask"]>[1], input: object) =>
  world.refused(name, caller, input as never);

describe("a session's token, over random trees", () => {
  it("opens its own family, finds and lists its scope, and sees nothing beyond that", async () => {
    await checkProperty(
      import.meta.filename,
      fc.asyncProperty(someTrees, async (plan) => {
        const nodes = await plant(world, plan);
        for (const by of nodes.filter((each) => !each.isEnded)) {
          for (const to of nodes) {
            for (const { name, input } of reads(to)) {
              const refusal = await run(name, by.caller, input);
              const what = `${name} ${by.scope} → ${to.scope}: ${refusal?.code}`;
              if (by.scope !== to.scope) assert.equal(refusal?.code, "not_found", what);
              else if (by.rootId === to.rootId || OF_THE_SCOPE.has(name)) assert.equal(refusal, null, what);
              else assert.equal(refusal?.code, "forbidden", what);
            }
          }
          await assertListsWithin(by.caller, by.scope);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it("acts only below itself; whatever is refused has changed nothing", async () => {
    await checkProperty(
      import.meta.filename,
      fc.asyncProperty(someTrees, async (plan) => {
        const nodes = await plant(world, plan);
        const roots = [...new Set(nodes.map((node) => node.rootId))];
        const before = await world.changes(roots);
        for (const by of nodes.filter((each) => !each.isEnded)) {
          for (const to of nodes) {
            for (const { name, input, who } of acts(to)) {
              if (mayAct(who, by, to)) continue;
              const refusal = await run(name, by.caller, input);
              assert.ok(refusal !== null, `${name} was done to one that is not below`);
              const codes = to.isEnded
                ? [...NOT_YOURS, "session_ended", "parent_ended", "already_answered"]
                : NOT_YOURS;
              assert.ok(codes.includes(refusal.code), `${name}: ${refusal.code} ${refusal.message}`);
            }
          }
        }
        assert.equal(await world.changes(roots), before);
      }),
      { numRuns: RUNS },
    );
  });

  it("is refused nothing that is within its reach", async () => {
    await checkProperty(
      import.meta.filename,
      fc.asyncProperty(someTrees, fc.nat(), async (plan, seed) => {
        const nodes = (await plant(world, plan)).filter((each) => !each.isEnded);
        const pairs = nodes.flatMap((by) => nodes.map((to) => ({ by, to })));
        const allowed = pairs.flatMap(({ by, to }) =>
          acts(to).flatMap((act) => (mayAct(act.who, by, to) && act.name !== "cancel" ? [{ by, act }] : [])),
        );
        if (allowed.length === 0) return;
        const { by, act } = allowed[seed % allowed.length]!;
        const refusal = await run(act.name, by.caller, act.input);
        const isNo = refusal !== null && NOT_YOURS.includes(refusal.code);
        assert.equal(isNo, false, `${act.name}: ${refusal?.code} ${refusal?.message}`);
      }),
      { numRuns: RUNS * 4 },
    );
  });

  it("of a session that has ended does nothing at all", async () => {
    await checkProperty(
      import.meta.filename,
      fc.asyncProperty(someTrees, async (plan) => {
        const nodes = await plant(world, plan);
        for (const by of nodes.filter((each) => each.isEnded)) {
          for (const to of nodes) {
            for (const { name, input } of [...reads(to), ...acts(to)])
              assert.equal((await run(name, by.caller, input))?.code, "session_ended", name);
          }
        }
      }),
      { numRuns: RUNS },
    );
  });

  it("reaches nothing that is a person's alone, by whatever way it comes", async () => {
    await checkProperty(
      import.meta.filename,
      fc.asyncProperty(someTrees, async (plan) => {
        const nodes = await plant(world, plan);
        const roots = [...new Set(nodes.map((node) => node.rootId))];
        const before = await world.changes(roots);
        const by = nodes.find((each) => !each.isEnded);
        if (by === undefined) return;
        for (const [name, spec] of Object.entries<OperationSpec>(OPERATIONS)) {
          if (spec.sessions) continue;
          const input = personOnly(name as OperationName, nodes[0]!);
          const refusal = await run(name as OperationName, by.caller, input);
          assert.equal(refusal?.code, "forbidden", name);
        }
        assert.equal(await world.changes(roots), before);
      }),
      { numRuns: RUNS },
    );
  });

  it("means only sessions of its own family by a name", async () => {
    await checkProperty(
      import.meta.filename,
      fc.asyncProperty(someTrees, async (plan) => {
        const nodes = await plant(world, plan);
        for (const by of nodes.filter((each) => !each.isEnded)) {
          const refusal = await run("get", by.caller, { id: "twin" });
          if (refusal?.code === "ambiguous_reference") {
            for (const id of refusal.details["ids"] as string[]) {
              assert.equal((await world.store.read.sessions.byId(id))?.rootId, by.rootId);
            }
          } else if (refusal !== null) assert.ok(["not_found", "forbidden"].includes(refusal.code));
          else assert.equal((await world.ask("get", by.caller, { id: "twin" })).session.rootId, by.rootId);
        }
      }),
      { numRuns: RUNS },
    );
  });
});

/** Returns input that would be accepted from a person, so that a refusal can only be due to the caller. */
function personOnly(name: OperationName, { id }: Node): Record<string, unknown> {
  switch (name) {
    case "create":
      return { prompt: "x", cwd: world.folder, permission: "full" };
    case "attach":
      return { client: "claude", cwd: world.folder };
    case "prompt":
      return { id, prompt: "x" };
    case "createToken":
      return { name: "mine", can: ["read"] };
    case "backup":
      return { path: `${world.folder}/copy.db` };
    case "update":
      return { id, title: "mine" };
    case "listTriggers":
    case "listTokens":
    case "import":
    case "imported":
      return {};
    case "revokeToken":
      return { id: "none" };
    default:
      return { id };
  }
}

/** Operations whose input names no session must list only sessions of the caller's scope. */
async function assertListsWithin(caller: Parameters<World["ask"]>[1], scope: string): Promise<void> {
  const { sessions } = await world.ask("list", caller, { limit: 500 });
  for (const session of sessions) assert.equal(session.scope, scope);
  const { hits } = await world.ask("search", caller, { query: "work", id: "all", limit: 50 });
  for (const hit of hits) assert.equal((await world.session(hit.sessionId)).scope, scope);
}

const RIGHTS = ["read", "spawn", "answer", "fire", "cancel"] as const satisfies readonly TokenRight[];

/** Lists the right that each operation needs a second time, to catch a mistake in the operation table. */
function keyAttempts(node: Node): (Attempt & { right: TokenRight })[] {
  const { id } = node;
  const asked = [
    ...reads(node).map((each) => ({ ...each, right: "read" as const })),
    { ...attempt("wait", { id, timeoutMs: 0 }), right: "read" as const },
    { ...attempt("spawn", { id, prompt: "more" }), right: "spawn" as const },
    { ...attempt("prompt", { id, prompt: "more" }), right: "spawn" as const },
    { ...attempt("fire", { id, type: "note", payload: {} }), right: "fire" as const },
    { ...attempt("cancel", { id, turnOnly: true }), right: "cancel" as const },
  ];
  if (node.triggerId === null)
    return [...asked, { ...attempt("tell", { id, message: "hi" }), right: "spawn" }];
  return [
    ...asked,
    { ...attempt("escalate", { id: node.triggerId }), right: "answer" },
    { ...attempt("respond", { id: node.triggerId, response: "yes" }), right: "answer" },
  ];
}

describe("an API key, over random trees", () => {
  const someKey = fc.record({
    can: fc.uniqueArray(fc.constantFrom(...RIGHTS), { minLength: 1 }),
    scope: fc.option(fc.constantFrom(...SCOPES), { nil: null }),
  });

  it("does what its stored rights and scope cover, and nothing else", async () => {
    await checkProperty(
      import.meta.filename,
      fc.asyncProperty(someTrees, someKey, async (plan, key) => {
        const nodes = await plant(world, plan);
        const { secret } = await world.ask("createToken", PERSON, { name: "ci", roots: ["/"], ...key });
        const caller = (await world.gate.identify(secret))!;
        for (const to of nodes.filter((each) => !each.isEnded)) {
          const isInScope = key.scope === null || key.scope === to.scope;
          for (const { name, input, right } of keyAttempts(to)) {
            const refusal = await run(name, caller, input);
            const isNo = refusal !== null && NOT_YOURS.includes(refusal.code);
            const isAllowed = isInScope && key.can.includes(right);
            assert.equal(
              isNo,
              !isAllowed,
              `${name} with ${key.can.join()} in ${key.scope}: ${refusal?.message ?? "done"}`,
            );
          }
        }
      }),
      { numRuns: RUNS },
    );
  });

  it("lists, finds and is asked nothing outside its scope, nor told its names", async () => {
    await checkProperty(
      import.meta.filename,
      fc.asyncProperty(someTrees, fc.constantFrom(...SCOPES), async (plan, scope) => {
        const nodes = await plant(world, plan);
        const { secret } = await world.ask("createToken", PERSON, { name: "ci", can: ["read"], scope });
        const caller = (await world.gate.identify(secret))!;
        await assertListsWithin(caller, scope);
        for (const who of ["person", "all"] as const) {
          const { triggers } = await world.ask("listTriggers", caller, { for: who });
          for (const each of triggers) assert.equal((await world.session(each.sessionId)).scope, scope);
        }
        const refusal = await run("get", caller, { id: "nobody-has-this-name" });
        const others = nodes.filter((each) => each.scope !== scope).map((each) => each.id.slice(-8));
        for (const shortId of others)
          assert.ok(!JSON.stringify([refusal?.message, refusal?.details]).includes(shortId));
      }),
      { numRuns: RUNS },
    );
  });

  it("starts roots in its own scope only", async () => {
    for (const scope of SCOPES) {
      const { secret } = await world.ask("createToken", PERSON, {
        name: "ci",
        can: ["spawn"],
        scope,
        roots: ["/"],
      });
      const caller = (await world.gate.identify(secret))!;
      const start = { prompt: "x", cwd: world.folder };
      const { session } = await world.ask("create", caller, start);
      assert.equal(session.scope, scope);
      for (const other of SCOPES) {
        if (other === scope) continue;
        assert.equal((await run("create", caller, { ...start, scope: other }))?.code, "forbidden");
      }
    }
  });

  it("never reaches what only a person or only a session may ask", async () => {
    const [node] = await plant(world, [
      {
        parent: 0,
        isRoot: true,
        scope: "default",
        isNamed: false,
        profile: "default",
        asks: false,
        fate: "lives",
      },
    ]);
    const { secret } = await world.ask("createToken", PERSON, { name: "ci", can: [...RIGHTS], roots: ["/"] });
    const caller = (await world.gate.identify(secret))!;
    const own = [
      "attach",
      "update",
      "detach",
      "reopen",
      "createToken",
      "listTokens",
      "revokeToken",
      "rollout",
      "backup",
    ] as const;
    for (const name of own)
      assert.equal((await run(name, caller, personOnly(name, node!)))?.code, "forbidden", name);
    const ofSessions = {
      ask: { questions: [{ question: "?" }], capMs: 0 },
      planReview: { title: "t", steps: ["s"], capMs: 0 },
      subagent: { tasks: [{ task: "t" }], capMs: 0 },
      waitChildren: { capMs: 0 },
      family: {},
      checkpoint: { id: node!.id, summary: "s" },
    };
    for (const [name, input] of Object.entries(ofSessions))
      assert.equal((await run(name as OperationName, caller, input))?.code, "forbidden", name);
  });

  it("is nobody once it is revoked or has expired, and says nothing about itself", async () => {
    const { secret, token } = await world.ask("createToken", PERSON, { name: "ci", can: ["read"] });
    assert.ok((await world.gate.identify(secret)) !== null);
    assert.equal(await world.gate.identify(`${secret}x`), null);
    await world.ask("revokeToken", PERSON, { id: token.id });
    assert.equal(await world.gate.identify(secret), null);
    const brief = await world.ask("createToken", PERSON, {
      name: "brief",
      can: ["read"],
      expiresInMs: 1_000,
    });
    world.skip(1_000);
    assert.equal(await world.gate.identify(brief.secret), null);
  });
});

describe("the feed", () => {
  it("carries only the caller's scope, and nothing to a key that may not read", async () => {
    const planned = {
      parent: 0,
      isRoot: true,
      isNamed: false,
      profile: "default",
      asks: false,
      fate: "lives",
    } as const;
    const [mine, other] = await plant(world, [
      { ...planned, scope: "team" },
      { ...planned, scope: "lab" },
    ]);
    const key = async (can: TokenRight[]) =>
      (await world.gate.identify(
        (await world.ask("createToken", PERSON, { name: "k", can, scope: "team", roots: ["/"] })).secret,
      ))!;
    for (const caller of [mine!.caller, await key(["read"])]) {
      const end = new AbortController();
      const feed = world.gate.feed(await world.known(caller), {
        after: null,
        tree: null,
        session: null,
        signal: end.signal,
      });
      const seen: string[] = [];
      const reading = (async () => {
        for await (const batch of feed) {
          seen.push(...batch.events.map((event) => event.rootId));
          if (seen.includes(mine!.rootId)) break;
          // The event of the other tree is written first. If the feed sent it by mistake, it would arrive
          // before the event of this tree.
          if (batch.events.length === 0) {
            await world.ask("tell", PERSON, { id: other!.id, message: "hi" });
            await world.ask("tell", PERSON, { id: mine!.id, message: "hi" });
          }
        }
      })();
      await reading;
      end.abort();
      assert.deepEqual([...new Set(seen)], [mine!.rootId]);
    }
    const blind = world.gate.feed(await key(["spawn"]), {
      after: null,
      tree: null,
      session: null,
      signal: new AbortController().signal,
    });
    await assert.rejects(blind[Symbol.asyncIterator]().next(), { code: "forbidden" });
  });
});
