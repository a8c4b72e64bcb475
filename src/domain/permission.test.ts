import assert from "node:assert/strict";
import { describe, it, test } from "node:test";
import * as fc from "fast-check";
import { Permission } from "../contract/index.ts";
import {
  atMost,
  hasNoTools,
  isLooser,
  ownToolsOf,
  sees,
  serverProblem,
  toolProblem,
  visibleFrom,
  withheldFrom,
} from "./permission.ts";
import { checkProperty } from "../testing/seeds.ts";

const ORDER = ["read-only", "ask", "workspace", "full"] as const;

test("every mode of the contract has its place", () => {
  assert.deepEqual(Permission.options.toSorted(), [...ORDER].toSorted());
});

test("a mode is looser than those before it and than no other", () => {
  for (const [at, mode] of ORDER.entries()) {
    for (const [than, other] of ORDER.entries()) assert.equal(isLooser(mode, other), at > than);
  }
});

test("what a child may have is its parent's mode or a stricter one", () => {
  assert.deepEqual(atMost("read-only"), ["read-only"]);
  assert.deepEqual(atMost("workspace"), ["read-only", "ask", "workspace"]);
  for (const mode of ORDER) assert.ok(atMost(mode).every((each) => !isLooser(each, mode)));
});

const lists = (tools: string[] | null, disallowedTools: string[] = []) => ({ tools, disallowedTools });

describe("Kinfold's own tools", () => {
  it("are not counted among an agent's", () => {
    assert.deepEqual(ownToolsOf(["Read", "spawn_session", "mcp__kinfold__checkpoint", "mcp__other__x"]), [
      "Read",
      "mcp__other__x",
    ]);
    assert.equal(ownToolsOf(null), null);
  });

  it("are all there where there is no list of tools", () => {
    assert.deepEqual(withheldFrom(lists(null)), []);
    assert.deepEqual(withheldFrom(lists(null, ["Bash"])), []);
    assert.equal(hasNoTools(lists(null)), false);
  });

  it("are none where a list names none of them", () => {
    for (const tools of [[], ["Read", "Grep"], ["mcp__other__spawn_session"]]) {
      assert.ok(withheldFrom(lists(tools)).includes("ask_user_question"), tools.join());
      assert.equal(hasNoTools(lists(tools)), true, tools.join());
    }
    assert.equal(hasNoTools(lists(["Read", "checkpoint"])), false);
    assert.equal(hasNoTools(lists(["mcp__kinfold"])), false);
  });

  it("are those named where a list names some", () => {
    const withheld = withheldFrom(lists(["Read", "mcp__kinfold__ask_user_question"]));
    assert.equal(withheld.includes("ask_user_question"), false);
    assert.ok(withheld.includes("wait_session"));
  });

  it("raise nobody in other words where spawn_session is kept from a session", () => {
    const all = ["spawn_session", "subagent", "create_session"];
    assert.deepEqual(withheldFrom(lists(null, ["spawn_session"])).toSorted(), all.toSorted());
    assert.deepEqual(withheldFrom(lists(null, ["subagent"])), ["subagent"]);
  });

  it("are gone altogether where the server is named", () => {
    assert.ok(withheldFrom(lists(null, ["mcp__kinfold"])).includes("checkpoint"));
  });
});

describe("an agent", () => {
  it("that cannot be restricted to a list of tools may have all of them and nothing else", () => {
    const codex = { name: "codex" };
    assert.equal(toolProblem(codex, lists(null)), null);
    assert.equal(toolProblem(codex, lists(null, ["spawn_session"])), null);
    assert.match(toolProblem(codex, lists([])) ?? "", /a list of tools/);
    assert.match(toolProblem(codex, lists(null, ["Bash"])) ?? "", /a list of tools/);
    assert.equal(toolProblem({ name: "pi", tools: ["Read"] }, lists(["Read"])), null);
  });

  it("is restricted to MCP servers as far as it can be", () => {
    assert.equal(serverProblem({ name: "a" }, null), null);
    assert.match(serverProblem({ name: "a" }, []) ?? "", /cannot be restricted/);
    assert.equal(serverProblem({ name: "a", servers: "ours" }, []), null);
    assert.match(
      serverProblem({ name: "a", servers: "ours" }, ["github"]) ?? "",
      /not to other servers by name/,
    );
    assert.equal(serverProblem({ name: "a", servers: "named" }, ["github"]), null);
  });
});

const shared = { visibility: "shared" } as const;
const isolated = { visibility: "isolated" } as const;

test("an isolated scope sees only itself, named in the configuration or not", () => {
  assert.deepEqual(visibleFrom("lab", { lab: isolated, team: shared }), ["lab"]);
  assert.deepEqual(visibleFrom("unknown", { team: shared }), ["unknown"]);
});

test("a shared scope sees all shared ones", () => {
  assert.deepEqual(visibleFrom("team", { team: shared, lab: isolated, docs: shared }), ["team", "docs"]);
});

test("whatever the configuration, seeing is mutual, and everyone sees itself", () => {
  const names = fc.constantFrom("a", "b", "c", "d");
  checkProperty(
    import.meta.filename,
    fc.property(fc.dictionary(names, fc.constantFrom(shared, isolated)), names, names, (scopes, one, two) => {
      assert.equal(sees(visibleFrom(one, scopes), two), sees(visibleFrom(two, scopes), one));
      assert.ok(sees(visibleFrom(one, scopes), one));
    }),
  );
});
