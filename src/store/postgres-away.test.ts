import assert from "node:assert/strict";
import { after, afterEach, describe, it } from "node:test";
import { uuidv7 } from "uuidv7";
import { silentLog } from "../log.ts";
import { type CuttingProxy, cuttingProxy } from "./testing/cutting-proxy.ts";
import type { Store } from "./port/store.ts";
import { openPostgres } from "./postgres/open.ts";
import type { StoreTrouble } from "./problem.ts";
import { aMessage, anEvent, aSession } from "./testing/sample.ts";
import { asked } from "./conformance/search.spec.ts";
import { testPostgres } from "./testing/test-postgres.ts";

const server = await testPostgres();
after(() => server.stop());

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function open(url: string, waiting?: (trouble: StoreTrouble) => Promise<void>): Promise<Store> {
  const store = await openPostgres({
    url,
    node: "local",
    boot: uuidv7(),
    log: silentLog,
    waitMs: 0,
    searchMs: 10_000,
    ...(waiting === undefined ? {} : { waiting }),
  });
  closers.push(() => store.close());
  return store;
}

async function throughProxy(): Promise<{ url: string; proxy: CuttingProxy }> {
  const url = new URL(await server.url());
  const proxy = await cuttingProxy(Number(url.port));
  closers.push(() => proxy.close());
  url.port = String(proxy.port);
  return { url: url.href, proxy };
}

async function aTree(store: Store): Promise<ReturnType<typeof aSession>> {
  const root = aSession();
  await store.write(root.id, (tx) => tx.sessions.add(root));
  return root;
}

/** A connection's process may end after it was listed; there is nothing to signal then. */
function signalAll(signal: NodeJS.Signals): void {
  for (const pid of server.pids()) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

async function until(what: string, ask: () => boolean): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!ask()) {
    if (performance.now() > deadline) throw new Error(`never came true: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe("a connection that is cut while it is lent", () => {
  it("to a search is replaced, and the search is answered", async () => {
    const { url, proxy } = await throughProxy();
    const store = await open(url);
    proxy.cutNext("FROM entries e");
    const found = await store.search(asked("words"));
    assert.deepEqual(found.hits, []);
    assert.equal(proxy.cuts, 1);
  });

  it("to the claim of a node is refused as busy, and the next claim holds", async () => {
    const { url, proxy } = await throughProxy();
    const store = await open(url);
    proxy.cutNext("FOR UPDATE");
    await assert.rejects(store.nodes.register([]), { code: "store_busy" });
    assert.equal(proxy.cuts, 1);
    assert.deepEqual(await store.nodes.register([]), { previousBoot: null });
  });

  it("to the opening of the store is replaced where the caller waits", async () => {
    const { url, proxy } = await throughProxy();
    proxy.cutNext("pg_control_system");
    const heard: string[] = [];
    await open(url, async ({ text }) => void heard.push(text));
    assert.equal(proxy.cuts, 1);
    assert.match(heard.join(), /does not answer \(Connection terminated unexpectedly\)/);
  });
});

describe("a server that is not there yet", () => {
  it("is waited for while it starts up, and the caller hears why", async () => {
    const { url, proxy } = await throughProxy();
    proxy.isStarting = true;
    const heard = Promise.withResolvers<StoreTrouble>();
    const opening = open(url, async (trouble) => heard.resolve(trouble));
    const { text } = await heard.promise;
    assert.match(text, /PostgreSQL at .* does not answer \(the database system is starting up\)/);
    proxy.isStarting = false;
    const root = await aTree(await opening);
    assert.notEqual(root, null);
  });

  it("is waited for while nothing listens at its address", async () => {
    const url = await server.url();
    await server.crash();
    const heard = Promise.withResolvers<StoreTrouble>();
    const opening = open(url, async (trouble) => heard.resolve(trouble));
    assert.match((await heard.promise).text, /ECONNREFUSED/);
    await server.startAgain();
    await aTree(await opening);
  });

  it("is not waited for where its answer is a refusal", async () => {
    const url = new URL(await server.url());
    url.pathname = "/nowhere";
    await assert.rejects(
      open(url.href, async () => assert.fail("waited")),
      /Create the database first/,
    );
  });
});

describe("a server that goes away", () => {
  it("killed and started again loses no write, does none twice, and is named while it is away", async () => {
    const store = await open(await server.url());
    const roots = await Promise.all(Array.from({ length: 4 }, () => aTree(store)));
    const writes = roots.flatMap((root) =>
      Array.from({ length: 20 }, async () =>
        store.write(root.id, async (tx) => {
          await tx.messages.add(aMessage(root.id));
          tx.append(anEvent(root.id));
        }),
      ),
    );
    await writes[0];
    await server.crash();
    await until("the store says that it waits", () => store.trouble() !== null);
    assert.match(store.trouble()?.text ?? "", /PostgreSQL at .* does not answer/);
    await server.startAgain();
    await Promise.all(writes);
    await until("the store says that all is well", () => store.trouble() === null);
    for (const root of roots) {
      assert.equal(await store.read.messages.queuedCount(root.id), 20);
      assert.equal((await store.feed.ofTree(root.id, 0, 100)).length, 20);
    }
  });

  it("at the COMMIT itself is asked after its restart what became of the write", async () => {
    const { url, proxy } = await throughProxy();
    const store = await open(url);
    const root = await aTree(store);
    proxy.cutNextCommit("after");
    const writing = store.write(root.id, async (tx) => {
      await tx.messages.add(aMessage(root.id));
      tx.append(anEvent(root.id));
    });
    await until("the COMMIT is cut", () => proxy.cuts === 1);
    await server.crash();
    await until("the store says that it waits", () => store.trouble() !== null);
    await server.startAgain();
    await writing;
    assert.equal(await store.read.messages.queuedCount(root.id), 1);
    assert.equal((await store.feed.ofTree(root.id, 0, 100)).length, 1);
  });

  it("held with its connections open is named, and goes on where it was when it is let go", async () => {
    const store = await open(await server.url());
    const root = await aTree(store);
    signalAll("SIGSTOP");
    try {
      const writing = store.write(root.id, (tx) => tx.messages.add(aMessage(root.id)));
      await until("the store says that it waits", () => store.trouble() !== null);
      signalAll("SIGCONT");
      await writing;
    } finally {
      signalAll("SIGCONT");
    }
    await until("the store says that all is well", () => store.trouble() === null);
    assert.equal(await store.read.messages.queuedCount(root.id), 1);
  });
});
