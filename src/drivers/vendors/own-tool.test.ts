import type { ToolCallUpdate } from "@agentclientprotocol/sdk/unstable";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentUpdate } from "../port.ts";
import { type OwnTool, plainOwnTool } from "../acp/update/own-tool.ts";
import { ToolCalls } from "../acp/update/tool-call.ts";
import { VENDORS } from "./index.ts";

const claudeOwnTool = ownToolOf("claude");
const codexOwnTool = ownToolOf("codex");
const geminiOwnTool = ownToolOf("gemini");
const opencodeOwnTool = ownToolOf("opencode");

function ownToolOf(name: string): OwnTool {
  const ownTool = VENDORS.find((vendor) => vendor.name === name)?.ownTool;
  assert.ok(ownTool);
  return ownTool;
}

/** Returns which of our tools the last update, a permission request, is for; null if it is another tool. */
function asked(ownTool: OwnTool, ...updates: object[]): string | null {
  const passed: AgentUpdate[] = [];
  const calls = new ToolCalls((update) => passed.push(update), ownTool);
  const about = updates.map((update) => ({ toolCallId: "c", ...update }) as ToolCallUpdate);
  for (const update of about.slice(0, -1)) calls.take(update);
  const call = calls.describe(about.at(-1) as ToolCallUpdate);
  return call.ours ? call.tool : null;
}

const claude = (toolName: string, more: object = {}): object => ({
  name: toolName,
  title: toolName,
  kind: "other",
  status: "pending",
  rawInput: { prompt: "child work" },
  _meta: { claudeCode: { toolName } },
  ...more,
});

const codex = (server: string, tool: string): object => ({
  kind: "execute",
  title: `mcp.${server}.${tool}`,
  status: "in_progress",
  rawInput: { server, tool, arguments: { prompt: "child work" } },
  _meta: { is_mcp_tool_call: true },
});

const gemini = (server: string, tool: string): object => ({
  toolCallId: `mcp_${server}_${tool}__fc_3d8d3628fc60f9d82f`,
  status: "pending",
  title: `${tool} (${server} MCP Server)`,
  locations: [],
  kind: "other",
});

const opencode = (title: string, more: object = {}): object => ({
  title,
  kind: "other",
  status: "pending",
  locations: [],
  rawInput: {},
  ...more,
});

const APPROVAL = { kind: "execute", status: "pending" };
const FORGED = { server: "kinfold", tool: "list_sessions", arguments: {}, sql: "drop table users" };

describe("a tool of ours", () => {
  it("is recognised in each agent's spelling, as recorded from the real agents", () => {
    assert.equal(asked(claudeOwnTool, claude("mcp__kinfold__spawn_session")), "spawn_session");
    assert.equal(asked(codexOwnTool, codex("kinfold", "spawn_session"), APPROVAL), "spawn_session");
    assert.equal(asked(geminiOwnTool, gemini("kinfold", "spawn_session")), "spawn_session");
    const updates = [opencode("kinfold_spawn_session"), { status: "in_progress", rawInput: { prompt: "x" } }];
    assert.equal(asked(opencodeOwnTool, ...updates, { status: "pending" }), "spawn_session");
    assert.equal(asked(plainOwnTool, { name: "mcp__kinfold__create_session" }), "create_session");
    assert.equal(asked(plainOwnTool, { title: "kinfold__wait_session" }), "wait_session");
  });

  it("is never recognised by a call's input", () => {
    assert.equal(asked(claudeOwnTool, claude("mcp__db__exec", { rawInput: FORGED })), null);
    assert.equal(asked(claudeOwnTool, claude("Write", { kind: "edit", rawInput: FORGED })), null);
    assert.equal(asked(plainOwnTool, { title: "mcp__db__exec", kind: "other", rawInput: FORGED }), null);
    assert.equal(asked(codexOwnTool, { title: "edit", kind: "edit", rawInput: FORGED }), null);
    assert.equal(
      asked(codexOwnTool, { ...codex("db", "exec"), rawInput: { ...FORGED, server: "db" } }),
      null,
    );
  });

  it("is never recognised by a title if there is a name, nor by the title of a file or a command", () => {
    const named = "mcp__kinfold__list_sessions";
    assert.equal(asked(claudeOwnTool, claude("Task", { title: named })), null);
    assert.equal(asked(claudeOwnTool, { title: named, kind: "other" }), null);
    assert.equal(asked(plainOwnTool, { name: "Task", title: named, kind: "other" }), null);
    for (const kind of ["edit", "read", "execute", "fetch"]) {
      assert.equal(asked(plainOwnTool, { title: named, kind }), null);
      assert.equal(asked(opencodeOwnTool, opencode("kinfold_list_sessions", { kind })), null);
    }
    assert.equal(asked(plainOwnTool, { title: named, kind: "other", rawInput: { command: named } }), null);
    assert.equal(asked(opencodeOwnTool, opencode("task"), opencode("kinfold_list_sessions")), null);
    assert.equal(
      asked(geminiOwnTool, { title: "list_sessions (kinfold MCP Server)", kind: "execute" }),
      null,
    );
  });

  it("is recognised by its whole name, not by a prefix that another server or a file may share", () => {
    for (const ownTool of [claudeOwnTool, codexOwnTool, geminiOwnTool, opencodeOwnTool, plainOwnTool]) {
      for (const name of [
        "kinfold.yaml",
        "kinfold_yaml",
        "mcp__kinfold__rm",
        "mcp__kinfold_evil__list_sessions",
      ]) {
        assert.equal(asked(ownTool, { name, title: name, kind: "other" }), null, name);
        assert.equal(asked(ownTool, { title: name, kind: "other" }), null, name);
      }
    }
    assert.equal(asked(claudeOwnTool, claude("mcp__kinfold_list_sessions")), null);
    assert.equal(asked(claudeOwnTool, claude("mcp__other__kinfold__list_sessions")), null);
    assert.equal(asked(codexOwnTool, codex("kinfold_evil", "list_sessions"), APPROVAL), null);
    assert.equal(asked(codexOwnTool, codex("kinfold", "rm"), APPROVAL), null);
    assert.equal(asked(geminiOwnTool, gemini("kinfold_list", "sessions")), null);
    assert.equal(asked(opencodeOwnTool, opencode("kinfold_evil_rm")), null);
  });

  it("is recognised by its first announcement, which no later update can change", () => {
    const evil = claude("mcp__db__exec");
    assert.equal(asked(claudeOwnTool, evil, claude("mcp__kinfold__list_sessions")), null);
  });
});
