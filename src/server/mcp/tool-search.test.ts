import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { instructionsFor, toolsFor } from "../../contract/index.ts";

/**
 * Codex hides tools behind a search. It ranks them by BM25 over each tool's name (one word, underscores
 * kept), title, description and parameter names, and over the server's instructions. A query that a model
 * would type must find the right tool among Codex's own tools.
 */
const QUERIES: readonly (readonly [query: string, tool: string])[] = [
  ["delegate task to another agent", "spawn_session"],
  ["run codex in background", "spawn_session"],
  ["ask gemini for a second opinion", "spawn_session"],
  ["spawn subagent", "subagent"],
  ["spawn child session", "spawn_session"],
  ["wait for child result", "wait_session"],
  ["stop a running child", "cancel_session"],
  ["send message to child", "tell_child"],
  ["ask parent a question", "ask_user_question"],
  ["submit plan for approval", "plan_review"],
  ["search previous sessions", "session_search"],
  ["which models are available", "list_models"],
  ["save summary for children", "checkpoint"],
  ["parallel code review", "subagent"],
];

interface Document {
  readonly name: string;
  readonly text: string;
}

const ours: readonly Document[] = toolsFor("full", { aliases: false }).map((tool) => ({
  name: tool.name,
  text: [
    tool.name,
    tool.title ?? "",
    tool.description,
    instructionsFor("full"),
    ...Object.keys(tool.inputSchema.properties),
  ].join(" "),
}));

/** The other tools in the same index. */
const others: readonly Document[] = [
  ["spawn_agent", "Spawn a sub-agent for a well-scoped task and return its id. agent_type message items"],
  ["wait_agent", "Wait for agents to reach a final status. ids timeout_ms"],
  ["send_input", "Send a message to an existing agent. id message interrupt"],
  ["close_agent", "Close an agent when it is no longer needed. id"],
  ["update_plan", "Updates the task plan with steps and their status. explanation plan"],
  ["view_image", "View a local image from the filesystem. path"],
  ["create_pull_request", "Create a new pull request in a repository. owner repo title body head base"],
  ["search_code", "Search for code across repositories. query sort order"],
  ["read_file", "Read the contents of a file. path offset limit"],
].map(([name = "", text = ""]) => ({ name, text: `${name} ${text}` }));

const STOP_WORDS = new Set(
  "a an and are as at be by for from in is it its of on or that the this to was which with you your".split(
    " ",
  ),
);

describe("tool search", () => {
  const search = bm25([...ours, ...others]);
  for (const [query, tool] of QUERIES) {
    test(`"${query}" brings ${tool} among the first three`, () => {
      const first = search(query).slice(0, 3);
      assert.ok(first.includes(tool), first.join(", "));
    });
  }
});

/** Ranks by Okapi BM25 with the usual constants, over stemmed words without stop words. */
function bm25(documents: readonly Document[]): (query: string) => string[] {
  const [k1, b] = [1.2, 0.75];
  const bags = documents.map(({ name, text }) => ({ name, words: wordsOf(text) }));
  const average = bags.reduce((sum, { words }) => sum + words.length, 0) / bags.length;
  const weight = (word: string): number => {
    const having = bags.filter(({ words }) => words.includes(word)).length;
    return Math.log(1 + (bags.length - having + 0.5) / (having + 0.5));
  };
  return (query) => {
    const asked = [...new Set(wordsOf(query))].map((word) => ({ word, idf: weight(word) }));
    const scored = bags.map(({ name, words }) => {
      const length = k1 * (1 - b + (b * words.length) / average);
      const score = asked.reduce((sum, { word, idf }) => {
        const count = words.filter((each) => each === word).length;
        return sum + (idf * count * (k1 + 1)) / (count + length);
      }, 0);
      return { name, score };
    });
    const found = scored.filter(({ score }) => score > 0).toSorted((x, y) => y.score - x.score);
    return found.map(({ name }) => name);
  };
}

function wordsOf(text: string): string[] {
  const words = text.toLowerCase().match(/[a-z0-9_]+/g) ?? [];
  return words.filter((word) => !STOP_WORDS.has(word)).map(stem);
}

function stem(word: string): string {
  if (word.length < 4 || word.includes("_")) return word;
  return word
    .replace(/(?:ies|y)$/, "i")
    .replace(/ren$/, "")
    .replace(/(?<=[a-z]{3})(?:al|ing|ed|es|s|e)$/, "");
}
