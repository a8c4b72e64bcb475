import assert from "node:assert/strict";
import { connect as connectSocket } from "node:net";
import { after, before, describe, test } from "node:test";
import { OPERATIONS } from "../contract/index.ts";
import type { OperationSpec } from "../contract/index.ts";
import { PERSON, bearer, fakeOperations, sessionCaller, start } from "./testing/fake-operations.ts";
import type { Running } from "./testing/fake-operations.ts";

let running: Running;
let asked = 0;

before(async () => {
  const fake = fakeOperations({
    health: async () => {
      asked += 1;
      return { ok: true } as never;
    },
  });
  fake.tokens.set("session-token", sessionCaller());
  running = await start(fake, {
    config: { host: "127.0.0.1", port: 0, allowHosts: ["box.example"], allowRemote: false, tls: null },
  });
});
after(() => running.server.close());

/** Sends raw bytes and returns the status and the body. */
function raw(lines: readonly string[]): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const socket = connectSocket(running.port, "127.0.0.1");
    let text = "";
    socket.setEncoding("utf8");
    socket.on("data", (piece: string) => (text += piece));
    socket.on("error", reject);
    socket.on("close", () => {
      const [head = "", body = ""] = text.split("\r\n\r\n");
      resolve({ status: Number(head.split(" ")[1]), body });
    });
    socket.write([...lines, "Connection: close", "", ""].join("\r\n"));
  });
}

function get(
  host: string | null,
  more: readonly string[] = [],
  target = "/api/health",
): Promise<{ status: number; body: string }> {
  const lines = [`GET ${target} HTTP/1.1`, `Authorization: Bearer ${PERSON}`, ...more];
  return raw(host === null ? lines : [...lines, `Host: ${host}`]);
}

function everyRoute(): [string, string][] {
  const routes = (Object.values(OPERATIONS) as OperationSpec[]).flatMap(({ http }): [string, string][] =>
    http === undefined ? [] : [[http.method, http.path.replaceAll(/:\w+/g, "x")]],
  );
  const further = [
    "/",
    "/api/events",
    "/api/openapi.json",
    "/mcp",
    "/nowhere",
    "/api",
    "/../etc/passwd",
    "/favicon.ico",
  ];
  return [
    ...routes,
    ...further.map((path): [string, string] => ["GET", path]),
    ["POST", "/mcp"],
    ["DELETE", "/mcp"],
  ];
}

describe("token", () => {
  test("every route refuses without a token, unknown ones too", async () => {
    for (const [method, path] of [...everyRoute(), ["OPTIONS", "/api/sessions"], ["HEAD", "/api/health"]]) {
      const response = await fetch(running.url + path, { method });
      assert.equal(response.status, 401, `${method} ${path}`);
      assert.match(response.headers.get("www-authenticate") ?? "", /^Bearer/);
    }
  });

  test("empty, garbage, truncated and misplaced tokens are refused", async () => {
    const wrong = [
      "",
      "Bearer",
      "Bearer ",
      `Basic ${PERSON}`,
      PERSON,
      `Bearer ${PERSON.slice(0, -1)}`,
      `Bearer ${PERSON} x`,
    ];
    for (const authorization of [...wrong, `Bearer ${"x".repeat(600)}`, "Bearer null", "Bearer undefined"]) {
      const response = await fetch(`${running.url}/api/health`, { headers: { authorization } });
      assert.equal(response.status, 401, authorization.slice(0, 40));
      const { error } = (await response.json()) as { error: { code: string } };
      assert.equal(error.code, "unauthorized");
    }
  });

  test("a token in the address is not a token", async () => {
    for (const query of [`token=${PERSON}`, `access_token=${PERSON}`, `authorization=Bearer%20${PERSON}`]) {
      assert.equal((await fetch(`${running.url}/api/health?${query}`)).status, 401);
    }
  });

  test("two Authorization headers are refused", async () => {
    const { status } = await get(`127.0.0.1:${running.port}`, ["Authorization: Bearer other"]);
    assert.equal(status, 401);
  });

  test("a revoked token fails at the next request", async () => {
    running.tokens.set("brief", { kind: "person", id: "p2", name: "Bob" });
    assert.equal((await fetch(`${running.url}/api/health`, { headers: bearer("brief") })).status, 200);
    running.tokens.delete("brief");
    assert.equal((await fetch(`${running.url}/api/health`, { headers: bearer("brief") })).status, 401);
  });

  test("a session's token reaches only what sessions may ask", async () => {
    for (const [name, { http, sessions }] of Object.entries(OPERATIONS) as [string, OperationSpec][]) {
      if (http === undefined) continue;
      const response = await fetch(running.url + http.path.replaceAll(/:\w+/g, "x"), {
        method: http.method,
        headers: bearer("session-token"),
      });
      const { error } = (await response.json()) as { error?: { code: string } };
      assert.equal(error?.code === "forbidden", !sessions, name);
    }
  });

  test("scopes and callers that a request declares are ignored", async () => {
    const headers = {
      ...bearer("session-token"),
      "x-scopes": "admin",
      "x-caller": "person",
      cookie: `token=${PERSON}`,
    };
    const response = await fetch(`${running.url}/api/backup`, { method: "POST", headers });
    assert.equal(response.status, 403);
  });
});

describe("Host", () => {
  test("the daemon answers to its own names", async () => {
    for (const host of ["127.0.0.1", "localhost", "LocalHost", "[::1]", "box.example"]) {
      assert.equal((await get(`${host}:${running.port}`)).status, 200, host);
    }
    assert.equal((await get("box.example")).status, 200);
  });

  test("every other Host is refused, before the token is looked at", async () => {
    const port = running.port;
    const foreign = [
      "evil.example",
      `evil.example:${port}`,
      `0.0.0.0:${port}`,
      `[::ffff:127.0.0.1]:${port}`,
      `[::ffff:7f00:1]:${port}`,
      `127.0.0.1.:${port}`,
      `localhost.:${port}`,
      `127.1:${port}`,
      `2130706433:${port}`,
      `127.0.0.1:${port + 1}`,
      "127.0.0.1",
      `user@127.0.0.1:${port}`,
      `127.0.0.1:${port}.evil.example`,
      `[::]:${port}`,
    ];
    const before = asked;
    for (const host of foreign) {
      const { status, body } = await get(host);
      assert.equal(status, 403, host);
      assert.match(body, /"host_refused"/);
    }
    assert.equal(asked, before);
  });

  test("a missing, empty or doubled Host is refused", async () => {
    const own = `127.0.0.1:${running.port}`;
    assert.equal((await get(null)).status, 403);
    assert.equal((await get("")).status, 403);
    assert.equal((await get(own, ["Host: evil.example"])).status, 403);
    assert.equal((await get(own, [`Host: ${own}`])).status, 403);
  });

  test("an absolute request target must name the same host", async () => {
    const own = `127.0.0.1:${running.port}`;
    assert.equal((await get(own, [], `http://${own}/api/health`)).status, 200);
    assert.equal((await get(own, [], "http://evil.example/api/health")).status, 403);
    assert.equal((await get(own, [], `http://localhost:${running.port}/api/health`)).status, 403);
    assert.equal((await get("evil.example", [], `http://${own}/api/health`)).status, 403);
  });

  test("a refused Host gives no token challenge and works for every method", async () => {
    for (const method of ["POST", "OPTIONS", "DELETE"]) {
      const { status } = await raw([`${method} /mcp HTTP/1.1`, "Host: evil.example", "Content-Length: 0"]);
      assert.equal(status, 403, method);
    }
  });
});

describe("Origin", () => {
  const paths = ["/api/health", "/api/events", "/mcp", "/nowhere"];

  test("a foreign or null Origin is refused everywhere", async () => {
    const origins = [
      "null",
      "https://evil.example",
      `https://127.0.0.1:${running.port}`,
      `http://127.0.0.1:${running.port + 1}`,
      "file://",
      "",
    ];
    for (const origin of [...origins, `http://localhost:${running.port}`]) {
      for (const path of paths) {
        const { status } = await get(`127.0.0.1:${running.port}`, [`Origin: ${origin}`], path);
        assert.equal(status, 403, `${origin} ${path}`);
      }
    }
  });

  test("the daemon's own Origin is answered, without any CORS header", async () => {
    const response = await fetch(`${running.url}/api/health`, {
      headers: { ...bearer(PERSON), origin: running.url },
    });
    assert.equal(response.status, 200);
    assert.deepEqual(
      [...response.headers.keys()].filter((name) => name.startsWith("access-control")),
      [],
    );
  });

  test("a preflight is denied", async () => {
    const headers = ["Origin: https://evil.example", "Access-Control-Request-Method: POST"];
    const { status } = await raw([
      "OPTIONS /api/sessions HTTP/1.1",
      `Host: 127.0.0.1:${running.port}`,
      ...headers,
    ]);
    assert.equal(status, 403);
  });

  test("an upgrade to WebSocket is no way around the token or the Origin", async () => {
    const upgrade = [
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: eA==",
    ];
    const request = ["GET /api/events HTTP/1.1", `Host: 127.0.0.1:${running.port}`, ...upgrade];
    assert.equal((await raw(request)).status, 401);
    assert.equal((await raw([...request, "Origin: https://evil.example"])).status, 403);
  });
});
