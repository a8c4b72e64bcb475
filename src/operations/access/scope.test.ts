import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import type { OperationName } from "../../contract/index.ts";
import { type Node, openWorld, plant, someTrees, type World } from "../testing/random-trees.ts";
import { sees, visibleFrom } from "../../domain/permission.ts";
import { checkProperty } from "../../testing/seeds.ts";

const RUNS = Number(process.env["KINFOLD_TEST_RUNS"] ?? 12);
/** The random trees also use the scope `default`, which is not configured and so is isolated. */
const SCOPES = { team: { visibility: "shared" }, lab: { visibility: "shared" } } as const;

let world: World;
before(async () => {
  world = await openWorld({ scopes: SCOPES });
});
after(() => world.close());

/** Returns a call of every operation that shows something about one session. */
function looks({ id }: Node): [OperationName, object][] {
  const plain = ["get", "tree", "children", "turns", "entries", "transcript", "inbox", "triggers"] as const;
  return [
    ...plain.map((name): [OperationName, object] => [name, { id }]),
    ["receipt", { id }],
    ["inspect", { id, view: "transcript" }],
    ["list", { root: id }],
    ["search", { query: "work", id }],
  ];
}

const isSeen = (by: Node, to: Node): boolean => sees(visibleFrom(by.scope, SCOPES), to.scope);

describe("scopes, over random trees", () => {
  it("a session finds and lists its own scope, and a shared one all that are shared, and nothing else", async () => {
    await checkProperty(
      import.meta.filename,
      fc.asyncProperty(someTrees, async (plan) => {
        const nodes = await plant(world, plan);
        for (const by of nodes.filter((each) => !each.isEnded)) {
          for (const to of nodes) {
            for (const [name, input] of looks(to)) {
              const refusal = await world.refused(name, by.caller, input as never);
              const what = `${name} ${by.scope} → ${to.scope}: ${refusal?.code}`;
              const isOwn = by.rootId === to.rootId || name === "list" || name === "search";
              assert.equal(
                refusal?.code ?? "seen",
                !isSeen(by, to) ? "not_found" : isOwn ? "seen" : "forbidden",
                what,
              );
            }
          }
        }
      }),
      { numRuns: RUNS },
    );
  });

  it("no listing and no search of everything crosses a scope", async () => {
    await checkProperty(
      import.meta.filename,
      fc.asyncProperty(someTrees, async (plan) => {
        const nodes = await plant(world, plan);
        const scopes = new Map<string, string>();
        const { sessions } = await world.ask(
          "list",
          { kind: "person", id: "p", name: "person" },
          { limit: 200 },
        );
        for (const { id, scope } of sessions) scopes.set(id, scope);
        for (const by of nodes.filter((each) => !each.isEnded)) {
          const visible = visibleFrom(by.scope, SCOPES);
          const listed = await world.ask("list", by.caller, { limit: 200 });
          for (const { scope } of listed.sessions)
            assert.ok(sees(visible, scope), `${by.scope} lists ${scope}`);
          const found = await world.ask("search", by.caller, { query: "work", id: "all", limit: 50 });
          assert.ok(found.hits.length > 0);
          for (const { sessionId } of found.hits) {
            const scope = scopes.get(sessionId) ?? (await world.session(sessionId)).scope;
            assert.ok(sees(visible, scope), `${by.scope} finds ${scope}`);
          }
        }
      }),
      { numRuns: RUNS },
    );
  });

  it("a child is of its parent's scope, whoever spawns it", async () => {
    await checkProperty(
      import.meta.filename,
      fc.asyncProperty(someTrees, async (plan) => {
        const nodes = await plant(world, plan);
        for (const { id, parent } of nodes) {
          if (parent !== null) assert.equal((await world.session(id)).scope, parent.scope);
        }
      }),
      { numRuns: RUNS },
    );
  });
});
