import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { REFUSALS, type RefusalCode, type Session } from "../src/contract/index.ts";
import { type Client, TestHome } from "./support/daemon.ts";
import { quiet, toolReplies } from "./support/family.ts";
import { script, tool } from "./support/script.ts";

const YAML = JSON.stringify({
  agents: {
    absent: { command: ["no-such-agent-program", "acp"], howToInstall: "npm install -g no-such-agent" },
    moved: { command: ["/nowhere/agent"] },
  },
});

interface Ask {
  readonly method?: string;
  readonly path: string;
  readonly body?: unknown;
  /** Sent unchanged instead of `body`. */
  readonly raw?: string;
  readonly headers?: Record<string, string>;
}

interface Expected {
  readonly code: RefusalCode;
  /** What the error must say: what was wrong, what is allowed, and what to do next. */
  readonly says: readonly RegExp[];
  readonly details?: Record<string, unknown>;
}

describe("bad input is refused with what is wrong, what is allowed and what next; nothing changes", () => {
  const home = new TestHome({ yaml: YAML, env: { KINFOLD_LIMITS_PROMPT_BYTES_MAX: "2000" } });
  let client: Client;
  let root: Session;
  let ended: Session;
  let strict: Session;

  before(async () => {
    client = await home.start({ env: { KINFOLD_ROOTS: home.work } });
    const start = (input: Record<string, unknown>) =>
      client.create({ cwd: home.work, prompt: script("say ready"), ...input });
    ({ session: root } = await start({ name: "root" }));
    ({ session: strict } = await start({ name: "strict", permission: "ask" }));
    ({ session: ended } = await start({ name: "ended" }));
    for (const { id } of [root, strict, ended]) await quiet(client, id);
    await client.cancel({ id: ended.id });
  });
  after(() => home.close());

  test("an unknown session", async () => {
    const known = /Known: .*(root|strict|ended).*\. kinfold ls --all shows all\./;
    const says = [/^No session "nobody"\./, known];
    for (const verb of [
      "",
      "/tree",
      "/children",
      "/turns",
      "/entries",
      "/transcript",
      "/inbox",
      "/triggers",
      "/receipt",
      "/rollout",
      "/wait",
    ]) {
      await refused({ method: "GET", path: `/api/sessions/nobody${verb}` }, { code: "not_found", says });
    }
    const bodies = {
      spawn: { prompt: "x" },
      prompt: { prompt: "x" },
      tell: { message: "x" },
      cancel: {},
      detach: {},
    };
    for (const [verb, body] of Object.entries(bodies)) {
      await refused({ path: `/api/sessions/nobody/${verb}`, body }, { code: "not_found", says });
    }
    const id = "01900000-0000-7000-8000-000000000000";
    await refused({ method: "GET", path: `/api/turns/${id}` }, { code: "not_found", says: [/^No turn/] });
    await refused(
      { method: "GET", path: "/api/sesions" },
      { code: "not_found", says: [/openapi\.json lists what there is/] },
    );
    await refused(
      { method: "DELETE", path: `/api/sessions/${root.id}` },
      { code: "method_not_allowed", says: [/allowed: .*GET/] },
    );
  });

  test("a session that has ended", async () => {
    const says = [
      /^"ended" \(\w{8}\) has ended and takes no more messages\. Spawn a new one for more work\.$/,
    ];
    await refused(
      { path: `/api/sessions/${ended.id}/prompt`, body: { prompt: "more" } },
      { code: "session_ended", says },
    );
    await refused(
      { path: `/api/sessions/${ended.id}/tell`, body: { message: "more" } },
      { code: "session_ended", says },
    );
    await refused(
      { path: `/api/sessions/${ended.id}/spawn`, body: { prompt: "child" } },
      { code: "parent_ended", says: [/has ended; it can have no more children/] },
    );
    await refused(
      { path: `/api/sessions/${ended.id}/detach`, body: {} },
      { code: "session_ended", says: [/has ended already/] },
    );
  });

  test("an agent that is unknown, or known and not installed", async () => {
    await creating(
      { agent: "gpt" },
      {
        code: "unknown_agent",
        says: [/^No agent "gpt" is known\. Installed: sim\./, /under "agents" in kinfold\.yaml/],
      },
    );
    await creating(
      { agent: "absent" },
      {
        code: "agent_not_installed",
        says: [
          /^The agent "absent" is not installed: no-such-agent-program was not found on the PATH\. Install it: npm install -g no-such-agent\. Installed: sim\.$/,
        ],
        details: { agent: "absent", howToInstall: "npm install -g no-such-agent", installed: ["sim"] },
      },
    );
    await creating(
      { agent: "moved" },
      { code: "agent_not_installed", says: [/Install it: install \/nowhere\/agent\./] },
    );
    await creating(
      { profile: "wizard" },
      {
        code: "unknown_profile",
        says: [/^There is no profile "wizard"\. Allowed: default, .*tester\. Leave it out/],
      },
    );
  });

  test("a folder that is missing, is a file, is not allowed, or is Kinfold's own", async () => {
    const file = path.join(home.work, "a-file");
    writeFileSync(file, "");
    const link = path.join(home.work, "way-out");
    symlinkSync("/usr", link);
    await creating(
      { cwd: path.join(home.work, "nope") },
      { code: "cwd_not_found", says: [/nope does not exist\. Name one that exists\./] },
    );
    await creating(
      { cwd: file },
      { code: "cwd_not_found", says: [/a-file is not a folder\. Name one that exists\./] },
    );
    const allowed = new RegExp(`^No session may work in /usr\\. Allowed: ${home.work}\\.$`);
    await creating({ cwd: "/usr" }, { code: "cwd_not_allowed", says: [allowed] });
    await creating({ cwd: link }, { code: "cwd_not_allowed", says: [allowed] });
    await creating({ cwd: `${home.work}/../` }, { code: "cwd_not_allowed", says: [/Allowed: /] });
    await creating({ cwd: `${home.work}x` }, { code: "cwd_not_found", says: [/does not exist/] });
    const own = [/No session may work in .*\. Allowed: any folder but Kinfold's own home\./];
    await creating({ cwd: home.home }, { code: "cwd_not_allowed", says: own });
    await creating({ cwd: path.join(home.home, "rollouts") }, { code: "cwd_not_allowed", says: own });
    const inside = path.join(home.work, "sub");
    mkdirSync(inside);
    const { session } = await client.spawn({ id: root.id, cwd: "sub", prompt: script("say here") });
    assert.equal(session.cwd, inside, "a relative folder is below the parent's");
    await quiet(client, session.id);
    await quiet(client, root.id);
  });

  test("a prompt that is empty or too long", async () => {
    const empty: Expected = {
      code: "empty_prompt",
      says: [/^The prompt is empty\. Say what to do, where, and what to report\.$/],
    };
    const long: Expected = {
      code: "prompt_too_large",
      says: [
        /^The prompt has 2001 bytes; the limit is 2000\. Put the material into a file and name its path\.$/,
      ],
      details: { bytes: 2001, max: 2000 },
    };
    for (const [prompt, expected] of [
      ["", empty],
      [" \n\t", empty],
      [`${"é".repeat(1000)}x`, long],
    ] as const) {
      await refused({ path: "/api/sessions", body: { prompt, cwd: home.work } }, expected);
      await refused({ path: `/api/sessions/${root.id}/spawn`, body: { prompt } }, expected);
      await refused({ path: `/api/sessions/${root.id}/prompt`, body: { prompt } }, expected);
      await refused({ path: `/api/sessions/${root.id}/tell`, body: { message: prompt } }, expected);
    }
  });

  test("a body that is not JSON, not an object, or not sent as JSON", async () => {
    const at = `/api/sessions/${root.id}/prompt`;
    for (const raw of ['{"prompt": "x"', "{prompt: x}", "hello"]) {
      await refused(
        { path: at, raw },
        { code: "malformed_json", says: [/^The body is not JSON: .*\. Send one JSON object\.$/] },
      );
    }
    for (const raw of ["[]", '"text"', "7", "null"]) {
      await refused(
        { path: at, raw },
        { code: "invalid_input", says: [/must be one JSON object|prompt is missing/] },
      );
    }
    await refused(
      { path: at, raw: "prompt=x", headers: { "content-type": "application/x-www-form-urlencoded" } },
      { code: "unsupported_media_type", says: [/send it with content-type: application\/json/] },
    );
    await refused(
      { path: `${at}?prompt=x`, body: {} },
      { code: "invalid_input", says: [/Fields go into the JSON body here; leave the query out\./] },
    );
  });

  test("unknown fields, with the nearest one there is", async () => {
    const at = `/api/sessions/${root.id}/spawn`;
    await refused(
      { path: at, body: { promt: "x" } },
      {
        code: "invalid_input",
        says: [/^"promt" is not a field here; did you mean "prompt"\? Allowed: .*prompt/],
        details: { field: "promt" },
      },
    );
    await refused(
      { path: at, body: { prompt: "x", permision: "ask" } },
      { code: "invalid_input", says: [/did you mean "permission"\?/] },
    );
    await refused(
      { path: at, body: { prompt: "x", banana: 1 } },
      { code: "invalid_input", says: [/^"banana" is not a field here\. Allowed: /] },
    );
    await refused(
      { path: at, body: { prompt: "x", callback: { templat: "x" } } },
      {
        code: "invalid_input",
        says: [
          /^"callback\.templat" is not a field here; did you mean "callback\.template"\? Allowed: callback\.enabled, /,
        ],
      },
    );
    await refused(
      { method: "GET", path: "/api/sessions?staus=idle" },
      { code: "invalid_input", says: [/^"staus" is not a field here; did you mean "status"\?/] },
    );
    const { session } = await client.create({
      cwd: home.work,
      prompt: script(
        tool("spawn_session", { promt: "x" }),
        tool("wait_session", { id: ["x"] }),
        tool("cancel_session", {}),
        tool("tell_child", { sessionId: "root", mesage: "x" }),
        tool("list_sesions", {}),
      ),
    });
    await quiet(client, session.id);
    const replies = await toolReplies(client, session.id, "");
    assert.ok(replies.every((reply) => reply.isError));
    const texts = replies.map((reply) => reply.text);
    assert.match(texts[0]!, /^invalid_input: "promt" is not a field here; did you mean "prompt"\?/);
    assert.match(texts[1]!, /^invalid_input: "id" is not a field here; did you mean "ids"\?/);
    assert.match(texts[2]!, /^invalid_input: sessionId is missing/);
    assert.match(texts[3]!, /^invalid_input: "mesage" is not a field here; did you mean "message"\?/);
    assert.match(texts[4]!, /did you mean list_sessions\?/i);
  });

  test("values of the wrong type or out of range", async () => {
    const at = `/api/sessions/${root.id}/spawn`;
    const cases: [Record<string, unknown>, RegExp][] = [
      [{ prompt: 5 }, /^prompt must be text\.$/],
      [{}, /^prompt is missing; it must be text\.$/],
      [
        { prompt: "x", permission: "root" },
        /^permission must be "read-only", "ask", "workspace" or "full"\.$/,
      ],
      [{ prompt: "x", callback: "yes" }, /^callback must be true or false or an object/],
      [{ prompt: "x", callback: { enabled: "no" } }, /callback/],
      [{ prompt: "x", onParentEnd: "die" }, /^onParentEnd must be "cancel" or "detach"\.$/],
      [{ prompt: "x", title: "t".repeat(201) }, /^title must be at most 200 characters long\.$/],
      [{ prompt: "x", key: "" }, /^key must be at least 1 character long\.$/],
    ];
    for (const [body, says] of cases)
      await refused({ path: at, body }, { code: "invalid_input", says: [says] });
    for (const query of [
      "timeout_ms=soon",
      "timeout_ms=1.5",
      "until=never",
      "timeout_ms=",
      "timeout_ms=1&timeout_ms=2",
    ]) {
      await refused(
        { method: "GET", path: `/api/sessions/${root.id}/wait?${query}` },
        { code: "invalid_input", says: [/^"?(timeout_ms|until)"? (must be|is given twice|is empty)/] },
      );
    }
    await refused(
      { method: "GET", path: "/api/sessions?limit=0" },
      { code: "invalid_input", says: [/^limit must be at least 1/] },
    );
    await refused(
      { method: "GET", path: "/api/sessions?cursor=zzz" },
      { code: "invalid_input", says: [/is not a cursor that this list gave/] },
    );
    await refused(
      { method: "GET", path: `/api/sessions/${root.id}/turns?cursor=zzz` },
      { code: "invalid_input", says: [/is not a cursor/] },
    );
  });

  test("names that could be mistaken for something else", async () => {
    for (const name of [
      "",
      "  ",
      "-rf",
      "../up",
      "a/b",
      'say "hi"',
      "x\ny",
      "<!-- trigger:1 -->",
      "@file",
      "n".repeat(61),
    ]) {
      await creating(
        { name },
        {
          code: "invalid_input",
          says: [
            /^name must be (made of letters, digits, space, dot, dash and underscore|at (least|most) \d+ characters? long)\.$/,
          ],
        },
      );
    }
    const { session } = await client.create({
      name: "  Ærø 2.1_b-c  ",
      cwd: home.work,
      prompt: script("say ok"),
    });
    assert.equal(session.name, "Ærø 2.1_b-c");
    await quiet(client, session.id);
  });

  test("a callback template that cannot be read", async () => {
    for (const [template, says] of [
      ["{{#if x}}", /: Parse error on line 1/],
      ["{{> partial}}", /partials are not allowed/],
      ["{{#each children}}x{{/each}}", /the block "each" is not known; only if, unless and eq are allowed/],
      ["{{lookup a b}}", /the helper "lookup" is not known/],
    ] as const) {
      const expected: Expected = {
        code: "bad_template",
        says: [says, /^The callback template cannot be used: [^T][^:]*\. Leave it out to use the default\.$/],
      };
      await creating({ callback: { template } }, expected);
      await refused(
        { path: `/api/sessions/${root.id}/spawn`, body: { prompt: "x", callback: { template } } },
        expected,
      );
      await refused(
        { method: "PATCH", path: `/api/sessions/${root.id}`, body: { callback: { template } } },
        expected,
      );
    }
  });

  test("more power than the parent has", async () => {
    for (const permission of ["workspace", "full"]) {
      await refused(
        { path: `/api/sessions/${strict.id}/spawn`, body: { prompt: "x", permission } },
        {
          code: "permission_too_wide",
          says: [
            new RegExp(
              `^Permission "${permission}" is wider than .*"ask"\\. Allowed: read-only, ask\\. Leave it out`,
            ),
          ],
          details: { asked: permission, allowed: ["read-only", "ask"] },
        },
      );
    }
    const { session } = await client.spawn({ id: strict.id, prompt: script("say ok") });
    assert.equal(session.effective.permission, "ask");
    await quiet(client, session.id);
    await quiet(client, strict.id);
  });

  test("a caller without a token, with a wrong one, or from another site", async () => {
    await refused(
      { method: "GET", path: "/api/health", headers: { authorization: "" } },
      { code: "unauthorized", says: [/Authorization: Bearer/] },
    );
    await refused(
      { method: "GET", path: "/api/nothing", headers: { authorization: "Bearer kfp_wrong" } },
      { code: "unauthorized", says: [/not valid/] },
    );
    await refused(
      { method: "GET", path: "/api/health", headers: { origin: "https://evil.example" } },
      { code: "host_refused", says: [/other sites/] },
    );
    await refused(
      { path: "/mcp", body: { jsonrpc: "2.0", id: 1, method: "tools/list" } },
      { code: "forbidden", says: [/sessions that Kinfold runs/] },
    );
  });

  function creating(input: Record<string, unknown>, expected: Expected): Promise<void> {
    return refused({ path: "/api/sessions", body: { prompt: "x", cwd: home.work, ...input } }, expected);
  }

  async function refused(ask: Ask, expected: Expected): Promise<void> {
    const label = `${ask.method ?? "POST"} ${ask.path} ${ask.raw ?? JSON.stringify(ask.body)}`;
    const before = await state();
    const response = await send(ask);
    const text = await response.text();
    const { error, ...rest } = JSON.parse(text) as {
      error: { code: string; message: string; details: Record<string, unknown> };
    };
    assert.deepEqual(
      [error.code, response.status],
      [expected.code, REFUSALS[expected.code][0]],
      `${label}: ${text}`,
    );
    assert.deepEqual([Object.keys(error), Object.keys(rest)], [["code", "message", "details"], []]);
    for (const says of expected.says) assert.match(error.message, says, label);
    assert.doesNotMatch(text, /\n\s+at |node_modules|file:\/\/|\.ts:\d/, "no stack");
    for (const [key, value] of Object.entries(expected.details ?? {}))
      assert.deepEqual(error.details[key], value);
    assert.deepEqual(await state(), before, `${label}: nothing has changed`);
  }

  function send(ask: Ask): Promise<Response> {
    const body = ask.raw ?? (ask.body === undefined ? undefined : JSON.stringify(ask.body));
    const headers = {
      authorization: `Bearer ${home.token}`,
      "content-type": "application/json",
      ...ask.headers,
    };
    return fetch(`${home.url}${ask.path}`, {
      method: ask.method ?? "POST",
      headers,
      ...(body !== undefined && { body }),
    });
  }

  async function state(): Promise<unknown> {
    const { sessions } = await client.list({ limit: 100 });
    return sessions.map(({ id, updatedAt, unread, round, messageCount }) => [
      id,
      updatedAt,
      unread,
      round,
      messageCount,
    ]);
  }
});
