import type { SessionStatus } from "../../contract/index.ts";
import type { ArgumentRow, CommandRow } from "./table.ts";

const STATUSES = ["idle", "running", "waiting", "ended"] as const satisfies readonly SessionStatus[];

const SESSION: ArgumentRow = {
  name: "session",
  summary: "id, short id or name",
  required: true,
  completes: "session",
};
const MAYBE: ArgumentRow = { ...SESSION, required: false };

/** Commands that only read. */
export const OBSERVE: readonly CommandRow[] = [
  {
    name: "ls",
    summary: "List sessions: families with something open or not looked at.",
    args: [],
    options: [
      { flags: "-a, --all", summary: "every session, also those finished and looked at" },
      { flags: "--unseen", summary: "only what has finished and was not looked at" },
      { flags: "--status <status>", summary: "only sessions of this status", choices: STATUSES },
    ],
    examples: [
      ["kinfold ls --unseen", "what came in since you looked"],
      ["kinfold ls --all --json | jq -r '.sessions[].shortId'", "for scripts"],
    ],
    exits: ["done", "refused", "noDaemon"],
  },
  {
    name: "tree",
    summary: "A family as a tree: of one session, or all open ones.",
    args: [MAYBE],
    options: [],
    examples: [["kinfold tree release", "its whole family, from the root"]],
    exits: ["done", "refused", "noDaemon"],
  },
  {
    name: "show",
    summary: "One session: state, evidence, receipt, last messages. Marks it as looked at.",
    args: [SESSION],
    options: [
      { flags: "--transcript", summary: "the whole transcript" },
      { flags: "--inherited", summary: "what it was given of its parent's context" },
      { flags: "--entry <number>", summary: "one entry whole, with those around it", kind: "int" },
    ],
    examples: [
      ["kinfold show tests --transcript | less", "everything that was said and done"],
      ["kinfold show tests --entry 12", "what kinfold search found"],
    ],
    exits: ["done", "refused", "noDaemon"],
  },
  {
    name: "watch",
    summary: "A live tree on a terminal; event lines in a pipe.",
    about: "q quits; arrow keys scroll. It stays correct when the daemon restarts.",
    args: [MAYBE],
    options: [{ flags: "-a, --all", summary: "also families that have finished" }],
    examples: [
      ["kinfold watch", "all open families"],
      ["kinfold watch release | tee release.log", "one line per event"],
    ],
    exits: ["done", "refused", "noDaemon"],
  },
  {
    name: "search",
    summary: "Find what was said and done, in every transcript.",
    about: `Words are ranked together. "a phrase", begin*, -without, agent: author: tool: path: before: after: tree:`,
    args: [
      { name: "words", summary: "what to find; without any: how to search", required: false, many: true },
    ],
    dashWords: true,
    options: [
      { flags: "--in <session>", summary: "one session, or all (default: all)", completes: "session" },
      { flags: "--newest", summary: "the newest first, not the best" },
      { flags: "-n, --limit <count>", summary: "how many hits (default: 10)", kind: "int" },
      { flags: "--cursor <cursor>", summary: "go on where an earlier search ended" },
    ],
    examples: [
      ["kinfold search token refresh -test", "in every transcript"],
      [`kinfold search '"access denied"' agent:codex after:2d`, "a phrase, by one agent, since two days"],
      ["kinfold search expiry --in review --newest", "in one session, newest first"],
    ],
    exits: ["done", "refused", "noDaemon"],
  },
  {
    name: "export",
    summary: "Write a transcript to standard output or a file.",
    args: [SESSION],
    options: [
      { flags: "--format <format>", summary: "default: markdown", choices: ["markdown", "text", "json"] },
      { flags: "--tree", summary: "the whole tree it belongs to" },
      { flags: "-o, --output <file>", summary: "a file instead of standard output", completes: "file" },
    ],
    examples: [["kinfold export release --tree -o release.md", "the whole family in one file"]],
    exits: ["done", "failed", "refused", "noDaemon"],
  },
];
