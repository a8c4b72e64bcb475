import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  type Caller,
  OPERATIONS,
  type OperationName,
  type OperationSpec,
  Refusal,
} from "../../contract/index.ts";
import { openWorld, PERSON, type World } from "../testing/random-trees.ts";

const SECRET = "canary";
const NO = new Set<string>(["forbidden", "not_a_child", "not_found", "unknown_trigger"]);

interface Other {
  readonly id: string;
  readonly turnId: string;
  readonly triggerId: string;
  readonly project: string;
}

let world: World;
let self: Caller & { kind: "session" };
let other: Other;
before(async () => {
  world = await openWorld();
  self = (await startOne("mine", "my own work")).caller;
  const { id, caller } = await startOne("theirs", `${SECRET} prompt`);
  await world.ask("prompt", PERSON, { id, prompt: `${SECRET} message` });
  const body = { text: `${SECRET} entry` };
  const entry = {
    turnId: null,
    author: "agent",
    kind: "text",
    body,
    isSubagent: false,
    at: Date.now(),
  } as const;
  await world.store.write(id, async (tx) => void (await tx.entries.append(id, [entry])));
  const questions = [{ question: `${SECRET} question` }];
  const { triggerId } = await world.ask("ask", caller, { questions, capMs: 0 });
  const { turns } = await world.ask("turns", PERSON, { id });
  const { projects } = await world.ask("projects", PERSON, {});
  other = { id, turnId: turns[0]!.id, triggerId: triggerId!, project: projects[0]!.id };
});
after(() => world.close());

/** Starts a root in the scope `team`. Returns its id and the caller that its token identifies. */
async function startOne(
  name: string,
  prompt: string,
): Promise<{ id: string; caller: Caller & { kind: "session" } }> {
  // The title is no secret: a listing may show names and titles.
  const work = { title: "a title", cwd: world.folder, scope: "team" };
  const { session } = await world.ask("create", PERSON, { ...work, name, prompt });
  const { token } = (await world.take(session.id))!;
  const caller = await world.gate.identify(token!);
  assert.equal(caller?.kind, "session");
  return { id: session.id, caller: caller as Caller & { kind: "session" } };
}

/**
 * For every operation that a session may call: the expected result, and an input. `refused`: the input names
 * something of another family, and the call is refused. `shows`: the input does too, but the call succeeds
 * and returns nothing that the other family said. `own`: the input names no session.
 */
const ATTEMPTS: Partial<
  Record<OperationName, readonly ["refused" | "shows" | "own", (at: Other) => object]>
> = {
  health: ["own", () => ({})],
  agents: ["own", () => ({})],
  models: ["own", () => ({})],
  projects: ["own", () => ({})],
  family: ["own", () => ({})],
  ask: ["own", () => ({ questions: [{ question: "which?" }], capMs: 0 })],
  planReview: ["own", () => ({ steps: ["one"], title: "plan", capMs: 0 })],
  subagent: ["own", () => ({ tasks: [{ task: "x" }], capMs: 0 })],
  list: ["shows", ({ id }) => ({ root: id })],
  search: ["shows", ({ id }) => ({ query: "nothing-of-that", id })],
  get: ["refused", ({ id }) => ({ id })],
  tree: ["refused", ({ id }) => ({ id })],
  children: ["refused", ({ id }) => ({ id })],
  turns: ["refused", ({ id }) => ({ id })],
  turn: ["refused", ({ turnId }) => ({ id: turnId })],
  entries: ["refused", ({ id }) => ({ id })],
  transcript: ["refused", ({ id }) => ({ id })],
  inbox: ["refused", ({ id }) => ({ id, all: true })],
  triggers: ["refused", ({ id }) => ({ id })],
  receipt: ["refused", ({ id }) => ({ id })],
  rollout: ["refused", ({ id }) => ({ id })],
  inspect: ["refused", ({ id }) => ({ id, view: "transcript" })],
  wait: ["refused", ({ id }) => ({ id, timeoutMs: 0 })],
  waitChildren: ["refused", ({ id }) => ({ ids: [id], timeoutMs: 0, capMs: 0 })],
  spawn: ["refused", ({ id }) => ({ id, prompt: "x" })],
  tell: ["refused", ({ id }) => ({ id, message: "x" })],
  cancel: ["refused", ({ id }) => ({ id })],
  checkpoint: ["refused", ({ id }) => ({ id, summary: "x" })],
  fire: ["refused", ({ id }) => ({ id, type: "ci.done", payload: {} })],
  respond: ["refused", ({ triggerId }) => ({ id: triggerId, response: "x" })],
  escalate: ["refused", ({ triggerId }) => ({ id: triggerId })],
  projectSession: ["refused", ({ id, project }) => ({ projectId: project, sessionId: id })],
  projectAgent: ["refused", ({ id, project }) => ({ projectId: project, sessionId: id, agentId: "a" })],
};

describe("a session's token, about another family of its scope", () => {
  for (const [name, spec] of Object.entries<OperationSpec>(OPERATIONS)) {
    if (!spec.sessions) continue;
    it(`${name}: reads nothing that was said there`, async () => {
      const attempt = ATTEMPTS[name as OperationName];
      assert.ok(
        attempt !== undefined,
        `${name} is new: say here what a session may ask about another family`,
      );
      const [kind, inputOf] = attempt;
      const answer = await world
        .ask(name as OperationName, self, inputOf(other) as never)
        .catch((error: unknown) => {
          if (!(error instanceof Refusal)) throw error;
          return error;
        });
      if (kind === "refused") {
        assert.ok(answer instanceof Refusal, `${name} was answered`);
        assert.ok(NO.has(answer.code), `${name}: ${answer.code}`);
      } else assert.equal(answer instanceof Refusal, false, `${name} was refused: ${String(answer)}`);
      const text =
        answer instanceof Refusal ? JSON.stringify([answer.message, answer.details]) : JSON.stringify(answer);
      assert.doesNotMatch(text, new RegExp(SECRET));
    });
  }

  it("a search of the scope shows the excerpt, says that it opens nothing, and it opens nothing", async () => {
    const { hits } = await world.ask("search", self, { query: SECRET, id: "all" });
    const [hit] = hits;
    assert.equal(hit?.opens, false);
    assert.match(hit?.snippet ?? "", /canary/);
    const refusal = await world.refused("inspect", self, { id: hit!.shortId, view: "transcript" });
    assert.equal(refusal?.code, "forbidden");
    assert.match(refusal?.message ?? "", /another family.*session_search shows excerpts/);
    const own = await world.ask("search", self, { query: "own work", id: "all" });
    assert.equal(
      own.hits.every((each) => each.opens),
      true,
    );
    const person = await world.ask("search", PERSON, { query: SECRET, id: "all" });
    assert.equal(
      person.hits.every((each) => each.opens),
      true,
    );
  });

  it("the feed is its own family's, whatever it asks for", async () => {
    const stop = new AbortController();
    const known = await world.known(self);
    const follow = (tree: string | null, session: string | null = null) =>
      world.gate.feed(known, { after: null, tree, session, signal: stop.signal })[Symbol.asyncIterator]();
    for (const [tree, session] of [
      [other.id, null],
      [null, other.id],
      ["theirs", null],
    ] as const)
      await assert.rejects(follow(tree, session).next(), { code: "forbidden" });
    const feed = follow(null);
    const first = await feed.next();
    assert.ok(first.value.cursor.includes(self.rootId), "its cursor is of its own tree");
    await world.ask("prompt", PERSON, { id: other.id, prompt: "more" });
    await world.ask("prompt", PERSON, { id: self.id, prompt: "more" });
    const seen = await feed.next();
    for (const event of seen.value.events) assert.equal(event.rootId, self.rootId);
    assert.ok(seen.value.events.length > 0);
    stop.abort();
    await feed.return?.(undefined);
  });
});
