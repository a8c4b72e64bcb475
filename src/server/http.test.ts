import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Refusal } from "../contract/index.ts";
import { silentLog } from "../log.ts";
import type { Call } from "../operations/port.ts";
import {
  PERSON,
  bearer,
  fakeOperations,
  sampleSession,
  sessionCaller,
  start,
} from "./testing/fake-operations.ts";
import type { Running } from "./testing/fake-operations.ts";
import { createServer } from "./http.ts";

interface Body {
  readonly error: { code: string; message: string; details: Record<string, unknown> };
}

let running: Running;
const inputs: { name: string; input: unknown }[] = [];
const logged: string[] = [];
/** What the fake `wait` operation does when it is called next. */
let onWait: (call: Call) => Promise<unknown> = () => Promise.resolve({ timedOut: true });

before(async () => {
  const noted = (name: string, output: unknown) => async (_caller: unknown, input: unknown) => {
    inputs.push({ name, input });
    return output as never;
  };
  const fake = fakeOperations({
    health: noted("health", { ok: true }),
    list: noted("list", { sessions: [], cursor: null }),
    create: noted("create", { session: sampleSession() }),
    spawn: noted("spawn", { session: sampleSession() }),
    update: noted("update", { session: sampleSession() }),
    detach: noted("detach", { session: sampleSession() }),
    transcript: async (_caller, input) => ({ text: `as ${input.format}` }),
    get: () => Promise.reject(new Refusal("not_found", "No session x.", { ref: "x" })),
    agents: () => Promise.reject(new Error("secret inside")),
    wait: async (_caller, input, call) => {
      inputs.push({ name: "wait", input });
      return (await onWait(call)) as never;
    },
  });
  const log = {
    ...silentLog,
    error: (data: object, text: string) =>
      void logged.push(`${text} ${String((data as { err?: unknown }).err)}`),
  };
  running = await start(fake, { log });
});
after(() => running.server.close());

async function ask(
  method: string,
  path: string,
  more: { body?: unknown; headers?: Record<string, string>; raw?: string } = {},
): Promise<Response> {
  const text = more.raw ?? (more.body === undefined ? undefined : JSON.stringify(more.body));
  const type: Record<string, string> = text === undefined ? {} : { "content-type": "application/json" };
  return fetch(running.url + path, {
    method,
    headers: { ...bearer(PERSON), ...type, ...more.headers },
    body: text,
  });
}

async function refusal(response: Response, code: string, status: number): Promise<Body["error"]> {
  const { error } = (await response.json()) as Body;
  assert.equal(error.code, code, error.message);
  assert.equal(response.status, status);
  return error;
}

function lastInput(): unknown {
  return inputs.at(-1)?.input;
}

describe("input", () => {
  test("a query is understood in snake_case and in camelCase", async () => {
    for (const query of ["timeout_ms=250&until=turn", "timeoutMs=250&until=turn"]) {
      assert.equal((await ask("GET", `/api/sessions/abc/wait?${query}`)).status, 200);
      assert.deepEqual(lastInput(), { id: "abc", timeoutMs: 250, until: "turn" });
    }
  });

  test("a path's field is decoded and reaches the operation", async () => {
    await ask("GET", `/api/sessions/${encodeURIComponent("auth tests/ü")}/wait`);
    assert.deepEqual(lastInput(), { id: "auth tests/ü", timeoutMs: 45_000, until: "completion" });
  });

  test("an unknown field is refused with the nearest one", async () => {
    const error = await refusal(
      await ask("POST", "/api/sessions", { body: { promt: "hi" } }),
      "invalid_input",
      400,
    );
    assert.match(error.message, /"promt" is not a field here; did you mean "prompt"\? Allowed: prompt, name/);
    const query = await refusal(await ask("GET", "/api/sessions?stauts=idle"), "invalid_input", 400);
    assert.match(query.message, /did you mean "status"/);
    const proto = await ask("POST", "/api/sessions", { raw: '{"prompt":"x","__proto__":{"a":1}}' });
    await refusal(proto, "invalid_input", 400);
  });

  test("a wrong type or value is refused in a sentence that says what is allowed", async () => {
    const wrong: [string, string, unknown, RegExp][] = [
      ["POST", "/api/sessions", {}, /^prompt is missing; it must be text\.$/],
      ["POST", "/api/sessions", { prompt: 3 }, /^prompt must be text\.$/],
      [
        "POST",
        "/api/sessions",
        { prompt: "x", permission: "all" },
        /^permission must be "read-only", "ask", "workspace" or "full"\.$/,
      ],
      [
        "POST",
        "/api/sessions",
        { prompt: "x", title: "x".repeat(201) },
        /^title must be at most 200 characters long\.$/,
      ],
      ["POST", "/api/sessions", { prompt: "x", name: "--" }, /^name must be made of letters, digits/],
      [
        "POST",
        "/api/sessions",
        { prompt: "x", callback: { enabled: 1 } },
        /^callback must be true or false or an object whose enabled/,
      ],
      ["POST", "/api/sessions", [], /one JSON object/],
      ["POST", "/api/sessions", "text", /one JSON object/],
      ["PATCH", "/api/sessions/x", { id: "y" }, /^id differs from the one in the path/],
      ["POST", "/api/sessions?prompt=x", { prompt: "x" }, /JSON body/],
    ];
    for (const [method, path, body, message] of wrong) {
      assert.match((await refusal(await ask(method, path, { body }), "invalid_input", 400)).message, message);
    }
    for (const query of ["limit=abc", "limit=501", "status=x", "limit=", "limit=1&limit=2", "unseen=maybe"]) {
      await refusal(await ask("GET", `/api/sessions?${query}`), "invalid_input", 400);
    }
  });

  test("an Idempotency-Key becomes the input's key", async () => {
    const headers = { "idempotency-key": "k1" };
    await ask("POST", "/api/sessions", { body: { prompt: "x" }, headers });
    assert.equal((lastInput() as { key: string }).key, "k1");
    const response = await ask("POST", "/api/sessions", { body: { prompt: "x", key: "k2" }, headers });
    assert.match((await refusal(response, "invalid_input", 400)).message, /Idempotency-Key/);
    assert.equal((await ask("POST", "/api/sessions/x/detach", { headers })).status, 200);
  });

  test("an operation without fields needs no body", async () => {
    assert.equal((await ask("POST", "/api/sessions/x/detach")).status, 200);
    assert.equal((await ask("POST", "/api/sessions/x/detach", { body: {} })).status, 200);
  });
});

describe("body", () => {
  test("what is not JSON is refused as such", async () => {
    for (const raw of ["{", "{'a':1}", "prompt=x", '{"prompt":"x"} {}', "\u0000"]) {
      await refusal(await ask("POST", "/api/sessions", { raw }), "malformed_json", 400);
    }
  });

  test("a form or plain text cannot ask for anything", async () => {
    const before = inputs.length;
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "application/json2",
      "",
    ]) {
      const response = await ask("POST", "/api/sessions", {
        raw: '{"prompt":"x"}',
        headers: { "content-type": type },
      });
      await refusal(response, "unsupported_media_type", 415);
    }
    const zipped = await ask("POST", "/api/sessions", { raw: "x", headers: { "content-encoding": "gzip" } });
    await refusal(zipped, "unsupported_media_type", 415);
    assert.equal(inputs.length, before);
  });

  test("a JSON type with a charset is read", async () => {
    const headers = { "content-type": "application/json; charset=UTF-8" };
    assert.equal((await ask("POST", "/api/sessions", { raw: '{"prompt":"ü"}', headers })).status, 200);
    assert.equal((lastInput() as { prompt: string }).prompt, "ü");
  });

  test("a body with 250,000 keys or 3,000 levels is refused before it is parsed", async () => {
    const keys = Array.from({ length: 250_000 }, (_, n) => `"k${n}":0`).join(",");
    const many = await ask("POST", "/api/sessions", { raw: `{"prompt":"x",${keys}}` });
    assert.match((await refusal(many, "invalid_input", 400)).message, /more than 10,000 fields and items/);
    const deep = `{"prompt":"x","limits":${"[".repeat(3_000)}${"]".repeat(3_000)}}`;
    const nested = await ask("POST", "/api/sessions", { raw: deep });
    assert.match((await refusal(nested, "invalid_input", 400)).message, /nests deeper than 64 levels/);
  });

  test("a body of 3 MB is taken, one beyond 4 MB refused, declared or not", async () => {
    assert.equal(
      (await ask("POST", "/api/sessions", { body: { prompt: "x".repeat(3_000_000) } })).status,
      200,
    );
    assert.equal(await sendBytes(5 * 1024 * 1024, true), 413);
    assert.equal(await sendBytes(5 * 1024 * 1024, false), 413);
  });
});

function sendBytes(bytes: number, isDeclared: boolean): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = {
      ...bearer(PERSON),
      "content-type": "application/json",
      ...(isDeclared && { "content-length": bytes }),
    };
    const request = httpRequest(`${running.url}/api/sessions`, { method: "POST", headers });
    request.on("response", (response) => {
      resolve(response.statusCode ?? 0);
      request.destroy();
    });
    request.on("error", reject);
    const piece = Buffer.alloc(1024 * 1024, "x");
    for (let sent = 0; sent < bytes; sent += piece.length) request.write(piece);
    request.end();
  });
}

describe("answer", () => {
  test("a refusal keeps its code, sentence, details and status", async () => {
    const error = await refusal(await ask("GET", "/api/sessions/x"), "not_found", 404);
    assert.deepEqual(error, { code: "not_found", message: "No session x.", details: { ref: "x" } });
  });

  test("a bug is logged in full and told without its inside", async () => {
    const error = await refusal(await ask("GET", "/api/agents"), "internal", 500);
    assert.doesNotMatch(JSON.stringify(error), /secret inside|\.ts/);
    assert.ok(logged.some((line) => line.includes("secret inside")));
  });

  test("every answer forbids caching, sniffing, framing and referrers", async () => {
    for (const path of ["/", "/api/health", "/api/agents", "/nowhere", "/api/sessions/x"]) {
      const { headers } = await ask("GET", path);
      assert.equal(headers.get("cache-control"), "no-store", path);
      assert.equal(headers.get("x-content-type-options"), "nosniff");
      assert.equal(headers.get("referrer-policy"), "no-referrer");
      assert.match(headers.get("content-security-policy") ?? "", /default-src 'none'/);
      assert.deepEqual(
        [...headers.keys()].filter((name) => name.startsWith("access-control")),
        [],
      );
    }
  });

  test("a transcript is JSON unless Accept asks for text", async () => {
    const path = "/api/sessions/x/transcript";
    assert.deepEqual(await (await ask("GET", path)).json(), { text: "as markdown" });
    for (const [accept, type, text] of [
      ["text/markdown", "text/markdown; charset=utf-8", "as markdown"],
      ["text/plain, application/json", "text/plain; charset=utf-8", "as text"],
    ] as const) {
      const response = await ask("GET", path, { headers: { accept } });
      assert.equal(response.headers.get("content-type"), type);
      assert.equal(await response.text(), text);
    }
    const asked = await ask("GET", `${path}?format=text`, {
      headers: { accept: "application/json, text/plain" },
    });
    assert.deepEqual(await asked.json(), { text: "as text" });
  });

  test("unknown addresses, methods, HEAD and OPTIONS are answered", async () => {
    await refusal(await ask("GET", "/api/nowhere"), "not_found", 404);
    await refusal(await ask("GET", "/api/sessions/x/nowhere"), "not_found", 404);
    const wrong = await ask("DELETE", "/api/sessions/x");
    assert.equal(wrong.headers.get("allow"), "GET, PATCH, HEAD, OPTIONS");
    await refusal(wrong, "method_not_allowed", 405);
    const options = await ask("OPTIONS", "/api/sessions");
    assert.equal(options.status, 204);
    assert.equal(options.headers.get("allow"), "GET, POST, HEAD, OPTIONS");
    const head = await ask("HEAD", "/api/health");
    assert.equal(head.status, 200);
    assert.equal(await head.text(), "");
    assert.equal((await ask("HEAD", "/api/events")).status, 200);
  });

  test("the API describes itself", async () => {
    const description = (await (await ask("GET", "/api/openapi.json")).json()) as { paths: object };
    assert.ok(Object.hasOwn(description.paths, "/api/sessions/{id}/wait"));
    assert.match(await (await ask("GET", "/")).text(), /^Kinfold 0\.0\.0-test/);
  });
});

describe("calls that end early", () => {
  test("a caller that goes away aborts its wait", async () => {
    const entered = Promise.withResolvers<Call>();
    const aborted = Promise.withResolvers<void>();
    onWait = (call) => {
      entered.resolve(call);
      call.signal.addEventListener("abort", () => aborted.resolve());
      return aborted.promise.then(() => ({}));
    };
    const controller = new AbortController();
    const response = fetch(`${running.url}/api/sessions/x/wait`, {
      headers: bearer(PERSON),
      signal: controller.signal,
    });
    await entered.promise;
    controller.abort();
    await assert.rejects(response);
    await aborted.promise;
  });

  test("a revoked token ends an open wait", async () => {
    running.tokens.set("brief", { kind: "person", id: "p2", name: "Bob" });
    const entered = Promise.withResolvers<void>();
    onWait = (call) =>
      new Promise((resolve) => {
        call.signal.addEventListener("abort", () => resolve({}));
        entered.resolve();
      });
    const response = fetch(`${running.url}/api/sessions/x/wait`, { headers: bearer("brief") });
    await entered.promise;
    running.tokens.delete("brief");
    await refusal(await response, "unauthorized", 401);
  });

  test("a session whose spawn was answered into a closed connection is remembered", async () => {
    const spawning = Promise.withResolvers<void>();
    const gone = Promise.withResolvers<void>();
    const session = sampleSession();
    const lost = Promise.withResolvers<string>();
    const fake = fakeOperations({
      spawn: async (_caller, _input, call) => {
        call.signal.addEventListener("abort", () => gone.resolve());
        spawning.resolve();
        await gone.promise;
        return { session } as never;
      },
    });
    fake.tokens.set("s", sessionCaller());
    const gate = { ...fake.gate, spawnReplyLost: async (_: unknown, id: string) => lost.resolve(id) };
    const other = await start({ ...fake, gate });
    const controller = new AbortController();
    const response = fetch(`${other.url}/api/sessions/x/spawn`, {
      method: "POST",
      headers: { ...bearer("s"), "content-type": "application/json" },
      body: '{"prompt":"x"}',
      signal: controller.signal,
    });
    await spawning.promise;
    controller.abort();
    await assert.rejects(response);
    assert.equal(await lost.promise, session.id);
    await other.server.close();
  });
});

describe("listening", () => {
  test("a daemon that stops ends waits, finishes the rest and refuses what comes", async () => {
    const entered = Promise.withResolvers<void>();
    const creating = Promise.withResolvers<void>();
    const created = Promise.withResolvers<void>();
    const fake = fakeOperations({
      wait: (_caller, _input, call) =>
        new Promise((resolve) => {
          call.signal.addEventListener("abort", () => resolve({} as never));
          entered.resolve();
        }),
      create: async () => {
        creating.resolve();
        await created.promise;
        return { session: sampleSession() } as never;
      },
    });
    const other = await start(fake);
    const waiting = fetch(`${other.url}/api/sessions/x/wait`, { headers: bearer(PERSON) });
    const json = { ...bearer(PERSON), "content-type": "application/json" };
    const slow = fetch(`${other.url}/api/sessions`, {
      method: "POST",
      headers: json,
      body: '{"prompt":"x"}',
    });
    await Promise.all([entered.promise, creating.promise]);
    const drained = other.server.drain();
    await refusal(await waiting, "shutting_down", 503);
    await refusal(await fetch(`${other.url}/api/health`, { headers: bearer(PERSON) }), "shutting_down", 503);
    created.resolve();
    assert.equal((await slow).status, 200);
    await drained;
    await other.server.close();
    await assert.rejects(fetch(`${other.url}/api/health`));
  });

  test("an address beyond loopback is refused without TLS or an explicit flag", async () => {
    const { operations, gate } = fakeOperations();
    const options = { operations, gate, log: silentLog, version: "0" };
    for (const host of ["0.0.0.0", "::", "192.168.1.4", "example.org"]) {
      const config = { host, port: 0, allowHosts: [], allowRemote: false, tls: null };
      await assert.rejects(createServer({ ...options, config }).listen(), /reachable from other machines/);
    }
    const config = { host: "0.0.0.0", port: 0, allowHosts: [], allowRemote: true, tls: null };
    const server = createServer({ ...options, config });
    const { url, port } = await server.listen();
    assert.equal(url, `http://127.0.0.1:${port}`);
    await server.close();
  });

  test("a port that is taken is named", async () => {
    const { operations, gate } = fakeOperations();
    const config = { host: "127.0.0.1", port: running.port, allowHosts: [], allowRemote: false, tls: null };
    const server = createServer({ operations, gate, log: silentLog, version: "0", config });
    await assert.rejects(server.listen(), new RegExp(`port ${running.port} on 127\\.0\\.0\\.1 is taken`));
  });

  test(
    "with a certificate it serves TLS, and Host and token hold there too",
    { skip: hasOpenssl() ? false : "openssl is not installed" },
    async () => {
      const folder = await mkdtemp(join(tmpdir(), "kinfold-tls-"));
      const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
      execFileSync(
        "openssl",
        [
          "req",
          "-x509",
          "-newkey",
          "ec",
          "-pkeyopt",
          "ec_paramgen_curve:P-256",
          "-nodes",
          "-days",
          "1",
          "-subj",
          "/CN=localhost",
          "-keyout",
          key,
          "-out",
          cert,
        ],
        { stdio: "ignore" },
      );
      const fake = fakeOperations({ health: async () => ({ ok: true }) as never });
      const config = { host: "127.0.0.1", port: 0, allowHosts: [], allowRemote: false, tls: { cert, key } };
      const other = await start(fake, { config });
      assert.match(other.url, /^https:/);
      assert.equal(await overTls(`${other.url}/api/health`, bearer(PERSON)), 200);
      assert.equal(await overTls(`${other.url}/api/health`, {}), 401);
      assert.equal(
        await overTls(`${other.url}/api/health`, { ...bearer(PERSON), host: "evil.example" }),
        403,
      );
      assert.equal(await overTls(`${other.url}/api/health`, { ...bearer(PERSON), origin: other.url }), 200);
      await other.server.close();
      const missing = createServer({
        ...fake,
        log: silentLog,
        version: "0",
        config: { ...config, tls: { cert: "/nowhere", key } },
      });
      await assert.rejects(missing.listen(), /tls\.cert names \/nowhere/);
      await rm(folder, { recursive: true });
    },
  );
});

function hasOpenssl(): boolean {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

function overTls(url: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpsRequest(url, { headers, rejectUnauthorized: false, agent: false }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode ?? 0));
    });
    request.on("error", reject);
    request.end();
  });
}
