import assert from "node:assert/strict";
import { test } from "node:test";
import { renderCallback } from "../domain/callback.ts";
import { briefOf } from "../domain/inheritance.ts";
import { mergeReceipts } from "../domain/receipt.ts";
import { renderAnswer, renderTrigger } from "../domain/trigger-text.ts";
import { harmless } from "../cli/terminal/text.ts";
import { sampleSession } from "../server/testing/fake-operations.ts";
import { askReply } from "../server/mcp/trigger-replies.ts";
import { inspectReply, searchReply } from "../server/mcp/read-replies.ts";
import { refusalLine } from "../server/mcp/reply.ts";
import { subagentReply } from "../server/mcp/subagent.ts";
import { waitReply } from "../server/mcp/wait.ts";
import { Refusal } from "../contract/refusal.ts";

const HIDDEN = [
  ["a control character", "\u0000"],
  ["a C1 control character", "\u0085\u008d"],
  ["a terminal sequence", "\u001b[31m"],
  ["a link of a terminal", "\u001b]8;;http://x\u0007"],
  ["a bidi override", "\u202e"],
  ["a bidi isolate", "\u2066"],
  ["a bidi mark", "\u200f\u061c"],
  ["a zero-width space", "\u200b"],
  ["a word joiner", "\u2060\ufeff"],
  ["a deprecated format character", "\u206a"],
  ["a filler", "\u3164\u115f"],
  ["a soft hyphen", "\u00ad"],
  ["an interlinear mark", "\ufff9"],
  ["tag characters", "\u{e0041}\u{e0042}\u{e007f}"],
  ["a run of variation selectors", "\ufe01\ufe02\u{e0101}"],
  ["a lone surrogate", "\ud800"],
] as const;

const ID = "7c1e4b90";
const session = sampleSession({ name: "docs", status: "idle", outcome: "completed" });

/** Every place where another session's words enter a prompt or a tool's reply. */
const PLACES: Readonly<Record<string, (text: string) => string>> = {
  callback: (text) =>
    renderCallback(callbackOf(text, null), {
      deliveryId: ID,
      stillAtWork: [],
      wakeable: true,
      repeated: false,
    }).text,
  "callback with a template": (text) =>
    renderCallback(callbackOf(text, "{{lastAssistantMessage}} {{spawnPrompt}}"), {
      deliveryId: ID,
      stillAtWork: [text],
      wakeable: true,
      repeated: false,
    }).text,
  question: (text) => trigger("ask_user_question", { questions: [{ question: text, options: [text] }] }),
  plan: (text) => trigger("plan_review", { title: text, steps: [text], description: text }),
  "permission request": (text) => trigger("permission", { command: text, cwd: text }),
  "fired payload": (text) => trigger("deploy", { text }),
  error: (text) => trigger("session_error", { error: text }),
  answer: (text) =>
    renderAnswer({
      deliveryId: ID,
      repeated: false,
      type: "ask_user_question",
      asked: text,
      by: text,
      action: null,
      response: text,
      answers: null,
      isData: true,
    }),
  "inherited block": (text) =>
    briefOf({
      mode: "brief",
      of: "parent",
      title: text,
      checkpoint: text,
      entries: [
        { author: "agent", kind: "text", body: { text }, isSubagent: false },
        { author: "tool", kind: "toolResult", body: { text, tool: "bash", ok: true }, isSubagent: false },
      ],
      hasEarlier: false,
      entities: [text],
      constraints: [{ name: text, text }],
      tailChars: 3_000,
      fenceId: ID,
      transcriptCall: "",
      restCall: "",
    })?.text ?? "",
  wait_session: (text) =>
    waitReply(
      {
        done: [endOf(text)],
        needsYou: [],
        working: [{ sessionId: session.id, shortId: session.shortId, name: null, doing: text }],
        timedOut: false,
        capped: false,
        waitedMs: 0,
        cursor: "w1",
        taken: [],
      },
      { unread: 0, isSourceForm: true, isWakeable: true, note: "" },
    ),
  get_session: (text) => inspectReply({ session, view: "result", text, cursor: null }, 0),
  session_search: (text) =>
    searchReply(
      {
        hits: [
          {
            opens: true,
            sessionId: session.id,
            shortId: session.shortId,
            name: "docs",
            lineage: [text],
            agent: "sim",
            index: 1,
            turnId: null,
            turn: 1,
            author: "agent",
            kind: "text",
            at: 0,
            snippet: text,
            marks: [],
          },
        ],
        cursor: null,
        total: 1,
        isWhole: true,
        near: [],
        elsewhere: null,
      },
      0,
      0,
    ),
  ask_user_question: (text) =>
    askReply(
      {
        triggerId: ID,
        shortId: ID,
        status: "answered",
        by: "its parent",
        action: null,
        response: text,
        answers: null,
        asked: "your parent",
        deliveryId: ID,
        taken: [],
      },
      { questions: [{ question: "Which?" }], capMs: 0 },
      0,
    ),
  subagent: (text) =>
    subagentReply(
      {
        results: [
          { sessionId: session.id, shortId: session.shortId, outcome: "working", task: text, text },
          { sessionId: null, shortId: null, outcome: "refused", task: text, text },
        ],
        needsYou: [],
        isOver: false,
        cursor: "w1",
        taken: [],
      } as unknown as Parameters<typeof subagentReply>[0],
      { unread: 0, isWakeable: true },
    ),
  refusal: (text) => refusalLine(new Refusal("invalid_input", `The name "${text}" is not known.`)),
  "a person's terminal": harmless,
};

for (const [place, render] of Object.entries(PLACES)) {
  test(`no character that a reader cannot see gets through: ${place}`, () => {
    for (const [what, hidden] of HIDDEN) {
      const text = render(`before${hidden}after`);
      assert.doesNotMatch(text, NEVER_SHOWN, what);
      assert.ok(text.includes("after"), `${what} took visible words with it`);
      assert.ok(text.isWellFormed(), what);
    }
  });
}

/** All of `HIDDEN` except the first of several variation selectors. */
const NEVER_SHOWN =
  /[[\p{Cc}--[\t\n]][\p{Default_Ignorable_Code_Point}--[\ufe00-\ufe0f]]\ufff9-\ufffb]|[\ufe00-\ufe0f]{2}/v;

function trigger(type: string, payload: Record<string, unknown>): string {
  return renderTrigger(type, payload, {
    deliveryId: ID,
    sender: { kind: "child", name: "docs", shortId: session.shortId, agent: "sim" },
    defaultInMs: null,
    repeated: false,
  });
}

function callbackOf(text: string, template: string | null): Parameters<typeof renderCallback>[0] {
  return {
    childId: session.id,
    childShortId: session.shortId,
    childName: "docs",
    agent: "sim",
    model: null,
    turnId: null,
    round: 1,
    outcome: "failed",
    reason: text,
    by: null,
    durationMs: 1_000,
    completedAt: 0,
    receipt: mergeReceipts([]),
    lastMessage: text,
    prompt: text,
    messageCount: 1,
    toolUseCount: 0,
    stoppedBelow: 0,
    left: [{ pid: 1, what: text }],
    lastTool: text,
    includeLastMessage: true,
    includeOriginalPrompt: true,
    template,
    parentId: session.id,
    unlanded: text,
  };
}

function endOf(text: string): Parameters<typeof waitReply>[0]["done"][number] {
  return {
    sessionId: session.id,
    shortId: session.shortId,
    name: "docs",
    outcome: "completed",
    result: text,
    lastWords: null,
    error: null,
    deliveryId: ID,
    delivered: false,
    block: "",
  };
}
