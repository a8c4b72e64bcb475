import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Session } from "../../contract/index.ts";
import type { NewEntry } from "../../store/port/store.ts";
import { openWorld, PERSON, type World } from "../testing/random-trees.ts";

let world: World;

before(async () => {
  world = await openWorld();
});

after(() => world.close());

/** Returns the brief of a child that is spawned after these entries of its parent. */
async function briefAfter(...said: readonly Partial<NewEntry>[]): Promise<string> {
  const work = { prompt: "work", cwd: world.folder };
  const { session } = await world.ask("create", PERSON, work);
  await append(session, [{ author: "person", ...text("Refactor FOO, never touch BAR.") }, ...said]);
  const child = (await world.ask("spawn", PERSON, { ...work, id: session.id })).session;
  return (await world.ask("inspect", PERSON, { id: child.id, view: "inherited" })).text;
}

async function append(session: Session, said: readonly Partial<NewEntry>[]): Promise<void> {
  const usual = { turnId: null, author: "agent", kind: "text", isSubagent: false, at: 1 } as const;
  const entries = said.map((each): NewEntry => ({ ...usual, body: { text: "" }, ...each }));
  await world.store.write(session.rootId, (tx) => tx.entries.append(session.id, entries));
}

function text(said: string): Partial<NewEntry> {
  return { kind: "text", body: { text: said } };
}

function thought(said: string): Partial<NewEntry> {
  return { kind: "thought", body: { text: said } };
}

function call(tool: string, input: unknown = {}): Partial<NewEntry> {
  return { kind: "toolCall", body: { text: tool, tool, callId: tool, input } };
}

function result(tool: string, said: string): Partial<NewEntry> {
  return { kind: "toolResult", author: "tool", body: { text: said, tool, callId: tool } };
}

test("what a tool returned at length before the spawn leaves the child what was said before it", async () => {
  const read = [call("Read"), result("Read", "L".repeat(60_000))];
  const brief = await briefAfter(text("The plan is X."), ...read, call("spawn_session"));
  assert.match(brief, /user: Refactor FOO, never touch BAR\.\n {2}agent: The plan is X\.\n/);
  assert.match(brief, /Read returned:\n.*\n {4}…L{700}/);
  assert.match(brief, /calls spawn_session \(no result yet\)$/);
});

test("a long file that was written leaves the child what was said before it", async () => {
  const brief = await briefAfter(
    ...["a", "b", "c", "d", "e", "f"].flatMap((file) => [
      call(`Write ${file}`, { content: "z".repeat(60_000) }),
      result(`Write ${file}`, "ok"),
    ]),
  );
  assert.match(brief, /Refactor FOO, never touch BAR\./);
  assert.doesNotMatch(brief, /earlier:/);
});

test("thoughts, however many and however long, push nothing out of a brief", async () => {
  const short = Array.from({ length: 300 }, () => thought("hm"));
  for (const thoughts of [short, [thought("t".repeat(100_000))]]) {
    const brief = await briefAfter(text("Plan is X."), ...thoughts);
    assert.match(brief, /user: Refactor FOO, never touch BAR\.\n {2}agent: Plan is X\.$/);
  }
});

test("many short entries fill the room that a brief has for them", async () => {
  const brief = await briefAfter(...Array.from({ length: 400 }, (_, i) => text(`ok ${i}`)));
  const [, recent = ""] = brief.split("Recent context:\n");
  assert.ok(recent.length > 2_950 && recent.length <= 3_000, `${recent.length} characters`);
  assert.match(recent, /^ {2}\(earlier: .*\n {2}agent: ok \d+\n[^]* {2}agent: ok 399$/);
});
