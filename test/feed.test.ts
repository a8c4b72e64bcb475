import assert from "node:assert/strict";
import { after, describe, test, type TestContext } from "node:test";
import { connect } from "../src/client/index.ts";
import type { Event } from "../src/contract/index.ts";
import { type TestPostgres, testPostgres } from "../src/store/testing/test-postgres.ts";
import { keptPort } from "../src/system/testing/kept-port.ts";
import { randomFrom, seedsOf } from "../src/testing/seeds.ts";
import { type Client, eventually, TestHome } from "./support/daemon.ts";
import { allQuiet, checkInvariants } from "./support/family.ts";
import { FeedReader, messagesOf, type RawMessage } from "./support/feed-reader.ts";
import { applyEvent, tablesOf, type View, viewOf } from "./support/feed-view.ts";
import { script, spawnStep, tool } from "./support/script.ts";

const CUTS = 50;
/** The typed client's connection is cut less often, because this client waits before it reconnects. */
const TYPED_CUTS = 12;

describe("feed", { concurrency: true }, () => {
  let server: Promise<TestPostgres> | null = null;
  after(async () => (await server)?.stop());
  const postgres = async (): Promise<string> => (await (server ??= testPostgres())).url();

  for (const seed of seedsOf(import.meta.filename)) {
    test(`resumed after fifty cuts and a daemon's death, the feed has no gap and shows what the tables hold (sqlite, seed ${seed})`, (t) =>
      manyCuts(t, "sqlite", seed));
    test(`resumed after fifty cuts and a daemon's death, the feed has no gap and shows what the tables hold (postgres, seed ${seed})`, async (t) =>
      manyCuts(t, await postgres(), seed));
  }
  test("a cursor that this feed did not give is answered by a reset (sqlite)", () => resets("sqlite"));
  test("a cursor that this feed did not give is answered by a reset (postgres)", async () =>
    resets(await postgres()));
});

async function manyCuts(t: TestContext, store: string, seed: number): Promise<void> {
  const chance = randomFrom(seed);
  const home = new TestHome({ store, env: { KINFOLD_LIMITS_SPAWNS_PER_MINUTE_MAX: "100" } });
  const readers: { close(): Promise<void> }[] = [];
  try {
    const env = { KINFOLD_PORT: String(await keptPort()) };
    let client = await home.start({ env });
    const all = new FeedReader(home, { chance, cutsMax: CUTS });
    readers.push(all);
    const first = await eventually("there is a cursor", async () => all.firstCursor);
    const typed = new TypedReader(home, chance);
    readers.push(typed);
    await eventually("the client's own reader is connected", async () => typed.isOpen);
    const roots = await startFamilies(client, home.work);
    const one = new FeedReader(home, { tree: roots[0]!, chance, cutsMax: CUTS });
    readers.push(one);

    await keepBusy(client, roots, () => all.cuts >= CUTS / 2);
    await home.kill();
    client = await home.start({ env });
    const late = new FeedReader(home, { chance, cutsMax: 0 });
    readers.push(late);
    await eventually("the feed is open", async () => late.firstCursor);
    const snapshot = await tablesOf(client, roots);
    await keepBusy(client, roots, () => all.cuts >= CUTS && one.cuts >= CUTS && typed.cuts >= TYPED_CUTS);
    for (const id of roots) {
      await allQuiet(client, id);
      await checkInvariants(client, id);
    }

    const tables = await tablesOf(client, roots);
    await converge("all trees", () => viewOf(all.events), tables);
    await converge("the typed client", () => viewOf(typed.events), tables);
    await converge("a snapshot and what came after it", () => withEvents(snapshot, late.events), tables);
    for (const id of roots) {
      const own = ofTree(all.events, id);
      assert.equal(numbers(own), own.map((_, at) => at + 1).join(" "), "no gap and no duplicate");
      assert.equal(numbers(ofTree(typed.events, id)), numbers(own));
      assert.deepEqual(ofTree(typed.events, id), own);
    }
    await eventually(
      "one tree's reader has come to the end",
      async () => one.raw.at(-1)?.seq === ofTree(all.events, roots[0]!).length,
    );
    const from = one.raw[0]!.seq;
    const whole = ofTree(all.events, roots[0]!).slice(from - 1);
    assert.equal(numbers(one.raw), numbers(whole), "exact: nothing comes twice");
    assert.deepEqual(one.raw, whole);
    assert.deepEqual([...all.resets, ...one.resets, ...late.resets], []);
    await sameFromTheStart(home, first, all.events);
    t.diagnostic(
      `${all.events.length} events, ${all.raw.length - all.events.length} came again; ${all.cuts} cuts`,
    );
  } finally {
    await Promise.all(readers.map((reader) => reader.close()));
    await home.close();
  }
}

/** Starts three trees in which children are spawned, waited for and cancelled, and send callbacks. */
async function startFamilies(client: Client, cwd: string): Promise<string[]> {
  const steps = (name: string): string[] => [`think ${name}`, "sleep 120", `say ${name} goes on`, "run true"];
  const child = (name: string): string =>
    spawnStep({ name, prompt: script(...steps(name), ...steps(name), `say ${name} done`) });
  const prompts = [
    script(child("a"), child("b"), ...steps("first"), "say ended"),
    script(child("c"), tool("wait_session", {}), ...steps("second")),
    script(
      spawnStep({ name: "d", prompt: script("run sleep 600") }, "d"),
      ...steps("third"),
      tool("cancel_session", { sessionId: "${d.session_id}" }),
    ),
  ];
  const created = await Promise.all(prompts.map((prompt) => client.create({ cwd, prompt })));
  return created.map(({ session }) => session.id);
}

/** Sends prompts until there have been enough cuts. */
async function keepBusy(client: Client, roots: readonly string[], isEnough: () => boolean): Promise<void> {
  for (let at = 0; !isEnough(); at += 1) {
    const id = roots[at % roots.length]!;
    await client.prompt({ id, prompt: script("think of it", "say so", `say ${at}`) });
    const before = (await client.get({ id })).session.round;
    await eventually("it has been taken", async () => {
      const { session } = await client.get({ id });
      return isEnough() || session.unread === 0 || session.round > before;
    });
  }
}

function ofTree(events: readonly Event[], rootId: string): Event[] {
  return events.filter((event) => event.rootId === rootId);
}

function numbers(events: readonly Event[]): string {
  return events.map((event) => event.seq).join(" ");
}

function withEvents(snapshot: View, events: readonly Event[]): View {
  const view = structuredClone(snapshot);
  for (const event of events) applyEvent(view, event);
  return view;
}

/**
 * Waits until the view equals the tables. No session works at this time; only events in transit still arrive.
 */
async function converge(what: string, look: () => View, tables: View): Promise<void> {
  const isEqual = async (): Promise<boolean> => {
    try {
      assert.deepEqual(look(), tables);
      return true;
    } catch {
      return false;
    }
  };
  await eventually(what, isEqual, 10_000).catch(() => assert.deepEqual(look(), tables, what));
}

async function sameFromTheStart(home: TestHome, cursor: string, known: readonly Event[]): Promise<void> {
  const end = new AbortController();
  const events: Event[] = [];
  for await (const message of messagesOf(home, { cursor, tree: null, signal: end.signal })) {
    if (message.event === "event") events.push(JSON.parse(message.data) as Event);
    if (events.length >= known.length) break;
  }
  end.abort();
  for (const rootId of new Set(known.map((event) => event.rootId)))
    assert.deepEqual(ofTree(events, rootId), ofTree(known, rootId));
}

/** Reads the feed with the typed client while its connections are cut. */
class TypedReader {
  readonly events: Event[] = [];
  isOpen = false;
  cuts = 0;
  readonly #chance: () => number;
  readonly #end = new AbortController();
  readonly #done: Promise<void>;

  constructor(home: TestHome, chance: () => number) {
    this.#chance = chance;
    const client = connect({
      url: home.url,
      token: home.token,
      fetch: (input, init) => this.#fetch(input, init),
    });
    this.#done = this.#follow(client);
  }

  async close(): Promise<void> {
    this.#end.abort();
    await this.#done;
  }

  async #follow(client: Client): Promise<void> {
    for await (const item of client.events({ signal: this.#end.signal })) {
      if (item.type === "open") this.isOpen = true;
      if (item.type === "reset") throw new Error(`an unexpected reset: ${item.message}`);
      if (item.type === "event") this.events.push(item.event);
    }
  }

  /** Cuts the connection 50 to 300 ms after the response has begun. */
  async #fetch(input: Parameters<typeof fetch>[0], init: Parameters<typeof fetch>[1]): Promise<Response> {
    if (this.cuts >= TYPED_CUTS) return fetch(input, init);
    const cut = new AbortController();
    const signal = AbortSignal.any([cut.signal, ...(init?.signal ? [init.signal] : [])]);
    const response = await fetch(input, { ...init, signal });
    this.cuts += 1;
    setTimeout(() => cut.abort(), 50 + Math.floor(this.#chance() * 250));
    return response;
  }
}

async function resets(store: string): Promise<void> {
  const home = new TestHome({ store });
  try {
    const client = await home.start();
    const ids: string[] = [];
    for (const name of ["one", "two"])
      ids.push((await client.create({ cwd: home.work, prompt: script(`say ${name}`) })).session.id);
    for (const id of ids) await allQuiet(client, id);
    const [tree = "", other = ""] = ids;
    const { epoch } = await client.health();
    const ofAll = (await opening(home, { cursor: null, tree: null })).id!;
    const ofOne = (await opening(home, { cursor: null, tree })).id!;
    const ofOther = (await opening(home, { cursor: null, tree: other })).id!;
    assert.equal((await opening(home, { cursor: ofAll, tree: null })).id, ofAll);
    assert.equal((await opening(home, { cursor: ofOne, tree })).id, ofOne);

    const another = crypto.randomUUID();
    const wrong = [`${another}.1`, "garbage", ".", `${epoch}.`, `${epoch}.x`, `${epoch}.-1`, `${epoch}.1e3`];
    for (const cursor of [...wrong, `${epoch}.${2 ** 52}`, ofOne])
      await expectReset(home, { cursor, tree: null });
    for (const cursor of [...wrong, `${epoch}.${tree}.${2 ** 52}`, `${epoch}.${tree}`, ofAll, ofOther])
      await expectReset(home, { cursor, tree });

    const seen: string[] = [];
    for await (const item of client.events({ after: `${another}.1` })) {
      seen.push(item.type);
      if (seen.length === 2) break;
    }
    assert.deepEqual(seen, ["reset", "open"], "the typed client says so and starts anew");
  } finally {
    await home.close();
  }
}

interface From {
  readonly cursor: string | null;
  readonly tree: string | null;
}

async function opening(home: TestHome, from: From): Promise<RawMessage> {
  const end = new AbortController();
  for await (const message of messagesOf(home, { ...from, signal: end.signal })) {
    if (message.id !== null || message.event !== "") return message;
  }
  throw new Error("the feed ended without a word");
}

async function expectReset(home: TestHome, from: From): Promise<void> {
  const messages: RawMessage[] = [];
  const { signal } = new AbortController();
  for await (const message of messagesOf(home, { ...from, signal })) messages.push(message);
  const last = messages.at(-1);
  assert.equal(last?.event, "reset", `${from.cursor} over ${from.tree ?? "all trees"}`);
  assert.equal(last.id, "", "the cursor is taken away");
  assert.match(last.data, /"feed_reset"/);
}
