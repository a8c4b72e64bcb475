import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { AskOf, Caller, OutputOf } from "../../contract/index.ts";
import { openWorld, PERSON, type World } from "../testing/random-trees.ts";

let world: World;
const family: Record<"root" | "child" | "grandchild" | "other", Caller & { kind: "session" }> = {} as never;

before(async () => {
  world = await openWorld();
  family.root = await started("root", null);
  family.child = await started("child", family.root.id);
  family.grandchild = await started("grandchild", family.child.id);
  family.other = await started("other", null);
  for (const [name, { id, rootId }] of Object.entries(family)) {
    await say(id, rootId, `heron of the ${name}`);
  }
});
after(() => world.close());

async function started(name: string, parentId: string | null): Promise<Caller & { kind: "session" }> {
  const start = { prompt: "work", cwd: world.folder, name };
  const { session } =
    parentId === null
      ? await world.ask("create", PERSON, start)
      : await world.ask("spawn", PERSON, { ...start, id: parentId });
  return { kind: "session", id: session.id, rootId: session.rootId, fence: 0 };
}

async function say(id: string, rootId: string, text: string): Promise<void> {
  const entry = { turnId: null, author: "agent", kind: "text", isSubagent: false, at: Date.now() } as const;
  await world.store.write(rootId, (tx) => tx.entries.append(id, [{ ...entry, body: { text } }]));
}

function search(caller: Caller, input: AskOf<"search">): Promise<OutputOf<"search">> {
  return world.ask("search", caller, input);
}

async function found(caller: Caller, input: AskOf<"search">): Promise<string[]> {
  return (await search(caller, input)).hits.map(({ name }) => name ?? "").toSorted();
}

describe("search", () => {
  it("looks into a child's parent, into a root itself, into everything when asked, and for a person everywhere", async () => {
    const query = "heron";
    assert.deepEqual(await found(family.root, { query }), ["root"]);
    assert.deepEqual(await found(family.child, { query }), ["root"]);
    assert.deepEqual(await found(family.grandchild, { query }), ["child"]);
    const all = ["child", "grandchild", "other", "root"];
    assert.deepEqual(await found(family.grandchild, { query, id: "all" }), all);
    assert.deepEqual(await found(PERSON, { query }), all);
    assert.deepEqual(await found(PERSON, { query, id: "child" }), ["child"]);
  });

  it("stays in the tree that the query names", async () => {
    const family4 = ["child", "grandchild", "root"];
    assert.deepEqual(await found(PERSON, { query: "heron tree:grandchild" }), family4);
    assert.deepEqual(await found(family.other, { query: "heron tree:child" }), family4);
    await assert.rejects(search(PERSON, { query: "heron tree:nobody" }), { code: "not_found" });
  });

  it("says of each hit which family it stands in", async () => {
    const { hits } = await search(PERSON, { query: "heron grandchild" });
    const [hit] = hits;
    assert.deepEqual(hit?.lineage, ["root", "child", "grandchild"]);
    assert.equal(hit?.agent, "fake");
    assert.deepEqual(
      hit?.marks.map(([from, to]) => hit.snippet.slice(from, to)),
      ["heron", "grandchild"],
    );
  });

  it("goes on where it ended, in the same order, whatever was written since", async () => {
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await search(PERSON, {
        query: "heron",
        limit: 1,
        ...(cursor === undefined ? {} : { cursor }),
      });
      seen.push(...page.hits.map(({ name }) => name ?? ""));
      cursor = page.cursor ?? undefined;
    } while (cursor !== undefined);
    assert.deepEqual(seen.toSorted(), ["child", "grandchild", "other", "root"]);
    await assert.rejects(search(PERSON, { query: "heron", cursor: "x" }), { code: "invalid_input" });
  });

  it("without a hit says what is near, and what there would be elsewhere", async () => {
    const { near, elsewhere, hits } = await search(PERSON, { query: "herron" });
    assert.deepEqual([hits, near, elsewhere], [[], [{ word: "herron", instead: "heron" }], null]);
    assert.equal((await search(PERSON, { query: "heron agent:codex" })).elsewhere, 4);
    assert.equal((await search(family.root, { query: "grandchild" })).elsewhere, 1);
  });

  it("refuses what it cannot read with what is allowed", async () => {
    for (const query of ["", "  ", "-heron", "before:someday heron", "((((", "heron author:nobody"]) {
      await assert.rejects(search(PERSON, { query }), { code: "bad_query", message: /\.$/ }, query);
    }
    for (const query of [
      '"heron',
      "NEAR(heron)",
      "heron AND",
      "heron'; DROP TABLE entries; --",
      "\u0000heron*",
    ]) {
      assert.ok((await search(PERSON, { query })).hits.length >= 0, query);
    }
  });
});
