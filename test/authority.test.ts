import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { connect } from "../src/client/index.ts";
import { OPERATIONS, type OperationSpec, type TokenRight } from "../src/contract/index.ts";
import { type Client, eventually, TestHome } from "./support/daemon.ts";
import { allQuiet } from "./support/family.ts";
import { openSpy, type Spy, SPY_YAML } from "./support/spy.ts";

const BUSY = "sim> hang";

/** Returns the address of an operation with every field of its path filled in. */
function addressOf(spec: OperationSpec, id: string): string {
  return (spec.http?.path ?? "").replace(":id", id);
}

async function request(home: TestHome, token: string, spec: OperationSpec, id: string): Promise<Response> {
  const isGet = spec.http?.method === "GET";
  return fetch(`${home.url}${addressOf(spec, id)}`, {
    method: spec.http?.method ?? "GET",
    headers: { authorization: `Bearer ${token}`, ...(isGet ? {} : { "content-type": "application/json" }) },
    ...(isGet ? {} : { body: "{}" }),
  });
}

async function codeOf(response: Response): Promise<string> {
  const { error } = (await response.json()) as { error?: { code: string } };
  return error?.code ?? "";
}

async function refusalOf(asked: Promise<unknown>): Promise<string> {
  return asked.then(
    () => "",
    (error: unknown) => (error as { code?: string }).code ?? String(error),
  );
}

/**
 * Opens the feed over HTTP. `ended` resolves to the number of bytes received once the daemon has ended the
 * stream.
 */
async function openStream(
  home: TestHome,
  token: string,
  path = "/api/events",
): Promise<{ ended: Promise<number> }> {
  const response = await fetch(`${home.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  assert.equal(response.status, 200);
  const reader = response.body!.getReader();
  await reader.read();
  const drain = async (): Promise<number> => {
    let bytes = 0;
    try {
      for (let part = await reader.read(); !part.done; part = await reader.read())
        bytes += part.value.byteLength;
    } catch {
      // A killed daemon cuts its streams, which counts as an end too.
      return bytes;
    }
    return bytes;
  };
  return { ended: drain() };
}

async function makeKey(client: Client, can: TokenRight[], scope: string | null = null) {
  return client.createToken({ name: "ci", can, scope, ceiling: "full", roots: ["/"] });
}

describe("tokens, at the door", { concurrency: 2 }, () => {
  test("a revoked key is refused at its next request, and its open stream and wait end", async () => {
    const home = new TestHome();
    try {
      const client = await home.start();
      const { session } = await client.create({ name: "busy", cwd: home.work, prompt: BUSY });
      const { secret, token } = await makeKey(client, ["read"]);
      const key = connect({ url: home.url, token: secret });
      assert.equal((await key.get({ id: "busy" })).session.id, session.id);
      const stream = await openStream(home, secret);
      const waiting = refusalOf(key.wait({ id: session.id, timeoutMs: 600_000 }));
      const other = await openStream(home, home.token);
      await client.revokeToken({ id: token.id });
      assert.equal(await refusalOf(key.get({ id: "busy" })), "unauthorized");
      await stream.ended;
      assert.equal(await waiting, "unauthorized");
      // The person's stream stays open and still receives events.
      await client.cancel({ id: session.id });
      await home.stop();
      assert.ok((await other.ended) > 0);
    } finally {
      await home.close();
    }
  });

  test("a key's scope and rights hold over HTTP, for its feed as well", async () => {
    const home = new TestHome();
    try {
      const client = await home.start();
      const start = { cwd: home.work, prompt: "hello" };
      const mine = (await client.create({ ...start, name: "mine", scope: "team" })).session;
      const other = (await client.create({ ...start, name: "other", scope: "lab" })).session;
      await allQuiet(client, mine.id);
      await allQuiet(client, other.id);
      const key = connect({
        url: home.url,
        token: (await makeKey(client, ["read", "spawn"], "team")).secret,
      });
      assert.deepEqual(
        (await key.list({})).sessions.map((each) => each.name),
        ["mine"],
      );
      assert.equal(await refusalOf(key.get({ id: other.id })), "not_found");
      assert.equal(await refusalOf(key.tree({ id: other.id })), "not_found");
      assert.equal(await refusalOf(key.spawn({ id: other.id, prompt: "x" })), "not_found");
      assert.equal(await refusalOf(key.cancel({ id: mine.id })), "forbidden");
      assert.equal(await refusalOf(key.createToken({ name: "more" })), "forbidden");
      assert.equal((await key.create({ ...start, name: "third" })).session.scope, "team");
      const blind = (await makeKey(client, ["spawn"])).secret;
      const refused = await fetch(`${home.url}/api/events`, {
        headers: { authorization: `Bearer ${blind}` },
      });
      assert.match(await refused.text(), /"code":"forbidden"/);
    } finally {
      await home.close();
    }
  });

  test("a session's token reaches no route that is a person's, and no other session's tools", async () => {
    const home = new TestHome({ yaml: SPY_YAML });
    let spy: Spy | null = null;
    try {
      const client = await home.start();
      spy = await openSpy(home, client, { name: "spy", prompt: BUSY });
      const outsider = (await client.create({ name: "outsider", cwd: home.work, prompt: BUSY, scope: "lab" }))
        .session;
      for (const [name, spec] of Object.entries<OperationSpec>(OPERATIONS)) {
        if (spec.http === undefined || spec.sessions) continue;
        const response = await request(home, spy.token, spec, spy.id);
        assert.equal(response.status, 403, name);
        assert.equal(await codeOf(response), "forbidden", name);
      }
      const session = connect({ url: home.url, token: spy.token });
      assert.equal(await refusalOf(session.get({ id: outsider.id })), "not_found");
      assert.equal(await refusalOf(session.tell({ id: outsider.id, message: "hi" })), "not_found");
      assert.equal(await refusalOf(session.cancel({ id: spy.id })), "not_a_child");
      for (const [tool, args] of [
        ["cancel_session", { sessionId: outsider.id }],
        ["tell_child", { sessionId: outsider.id, message: "hi" }],
        ["get_session", { sessionId: outsider.id }],
        ["fire_trigger", { sessionId: outsider.id, type: "note", payload: {} }],
        ["wait_session", { ids: [outsider.id], timeoutMs: 0 }],
      ] as const) {
        const { isError, text } = await spy.call(tool, args);
        assert.ok(isError && text.startsWith("not_found:"), `${tool}: ${text}`);
      }
      const tools = await fetch(`${home.url}/mcp`, {
        method: "POST",
        headers: { authorization: `Bearer ${home.token}`, "content-type": "application/json" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
      });
      assert.equal(tools.status, 403);
    } finally {
      await spy?.close();
      await home.close();
    }
  });

  test("a token dies with its process: after a restart, and when its session was cancelled", async () => {
    const home = new TestHome({ yaml: SPY_YAML });
    try {
      const client = await home.start();
      const spy = await openSpy(home, client, { name: "spy", prompt: BUSY });
      const stream = await openStream(home, spy.token);
      await home.kill();
      await stream.ended;
      const again = await home.start();
      const zombie = connect({ url: home.url, token: spy.token });
      await eventually(
        "the old token is nobody's",
        async () => (await refusalOf(zombie.health({}))) === "unauthorized",
      );
      const other = await openSpy(home, again, { name: "other", prompt: BUSY });
      const held = await openStream(home, other.token);
      await again.cancel({ id: other.id });
      await held.ended;
      const dead = connect({ url: home.url, token: other.token });
      assert.ok(["unauthorized", "session_ended"].includes(await refusalOf(dead.list({}))));
      assert.equal(
        await refusalOf(dead.spawn({ id: other.id, prompt: "x" })).then((code) => code !== ""),
        true,
      );
    } finally {
      await home.close();
    }
  });

  test("a profile whose list of tools names none of ours gives its agent neither our server nor a token", async () => {
    const home = new TestHome();
    try {
      mkdirSync(path.join(home.home, "profiles"), { mode: 0o700 });
      const profile = (name: string, tools: string): void =>
        writeFileSync(
          path.join(home.home, "profiles", `${name}.md`),
          `---\nname: ${name}\ndescription: x\ntools: ${tools}\n---\nRead.\n`,
        );
      profile("reader", "Read, Grep");
      profile("asker", "Read, ask_user_question");
      const client = await home.start();
      const prompt = "sim> tool list_sessions {}";
      const said = async (name: string): Promise<string> => {
        await client.create({ name, profile: name, cwd: home.work, prompt });
        const { result } = await client.wait({ id: name, timeoutMs: 60_000 });
        return result ?? "";
      };
      assert.match(await said("reader"), /no server was given/);
      assert.match(await said("asker"), /list_sessions/);
      assert.doesNotMatch(await said("asker"), /no server was given/);
    } finally {
      await home.close();
    }
  });

  test("a session's token opens no other family over HTTP, MCP or the feed, and finds an excerpt of it", async () => {
    const home = new TestHome({ yaml: SPY_YAML });
    try {
      const client = await home.start();
      const scope = "team";
      const other = await client.create({ name: "other", scope, cwd: home.work, prompt: "canary words" });
      await allQuiet(client, other.session.id);
      const spy = await openSpy(home, client, { name: "spy", scope, prompt: BUSY });
      const { id } = other.session;
      for (const path of [
        "",
        "/tree",
        "/entries",
        "/transcript",
        "/inbox",
        "/triggers",
        "/turns",
        "/receipt",
      ]) {
        const response = await fetch(`${home.url}/api/sessions/${id}${path}`, {
          headers: { authorization: `Bearer ${spy.token}` },
        });
        assert.equal(await codeOf(response), "forbidden", path);
      }
      const follow = await fetch(`${home.url}/api/events?tree=${id}`, {
        headers: { authorization: `Bearer ${spy.token}` },
      });
      // The stream reports the reason and ends.
      assert.match(await follow.text(), /"forbidden"/);
      const opened = await spy.call("get_session", { sessionId: id, view: "transcript" });
      assert.equal(opened.isError, true);
      assert.match(opened.text, /another family/);
      const session = connect({ url: home.url, token: spy.token });
      const { hits } = await session.search({ query: "canary", id: "all" });
      assert.deepEqual(
        new Set(hits.map((hit) => [hit.sessionId, hit.opens].join())),
        new Set([`${id},false`]),
      );
      const { sessions } = await session.list({});
      assert.deepEqual(sessions.find((each) => each.id === id)?.spawnConfig, {});
      await client.cancel({ id: spy.id });
    } finally {
      await home.close();
    }
  });
});
