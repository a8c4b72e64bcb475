import type { SessionStatus } from "../../contract/index.ts";
import type { ArgumentRow, CommandSpec } from "./table.ts";

const STATUSES = ["idle", "running", "waiting", "ended"] as const satisfies readonly SessionStatus[];

const MAYBE: ArgumentRow = { name: "session", summary: "id, short id or name", completes: "session" };
export const SESSION: ArgumentRow = { ...MAYBE, required: true };

export const OBSERVE: readonly CommandSpec[] = [
  {
    name: "ls",
    summary: "List the sessions that are open, or that finished and you have not seen.",
    options: [
      { flags: "-a, --all", summary: "all sessions, also finished ones that you have seen" },
      { flags: "--unseen", summary: "only finished sessions that you have not seen" },
      { flags: "--status <status>", summary: "only sessions with this status", choices: STATUSES },
    ],
    examples: [
      ["kinfold ls --unseen", "what has finished since you last looked"],
      ["kinfold ls --all --json | jq -r '.sessions[].shortId'", "for scripts"],
    ],
  },
  {
    name: "tree",
    summary: "Draw the family of one session as a tree, or all open families.",
    args: [MAYBE],
    examples: [["kinfold tree release", "its whole family, from the root"]],
  },
  {
    name: "show",
    summary: "Show one session: state, evidence, receipt, last messages. Marks it as seen.",
    args: [SESSION],
    options: [
      { flags: "--transcript", summary: "the whole transcript" },
      { flags: "--inherited", summary: "the context that it inherited from its parent" },
      { flags: "--entry <number>", summary: "one entry in full, with the entries around it", kind: "int" },
    ],
    examples: [
      ["kinfold show tests --transcript | less", "everything that was said and done"],
      ["kinfold show tests --entry 12", "an entry that kinfold search found"],
    ],
  },
  {
    name: "watch",
    summary: "Watch sessions live: a tree on a terminal, one line per event in a pipe.",
    about: "q quits; the arrow keys scroll. It keeps working when the daemon restarts.",
    args: [MAYBE],
    options: [{ flags: "-a, --all", summary: "also finished families" }],
    examples: [
      ["kinfold watch", "all open families"],
      ["kinfold watch release | tee release.log", "one line per event"],
    ],
  },
  {
    name: "search",
    summary: "Search everything that was said and done, in all transcripts.",
    about: `Hits with more of the words come first. You can use "a phrase", begin*, -without, and the filters agent: author: tool: path: before: after: tree:`,
    args: [
      {
        name: "words",
        summary: "what to find; without words, it prints how to search",
        many: true,
      },
    ],
    dashWords: true,
    options: [
      { flags: "--in <session>", summary: "only this session (default: all)", completes: "session" },
      { flags: "--newest", summary: "newest hits first, instead of best hits first" },
      { flags: "-n, --limit <count>", summary: "how many hits (default: 10)", kind: "int" },
      { flags: "--cursor <cursor>", summary: "continue an earlier search from this cursor" },
    ],
    examples: [
      ["kinfold search token refresh -test", "in every transcript"],
      [
        `kinfold search '"access denied"' agent:codex after:2d`,
        "a phrase, by one agent, in the last two days",
      ],
      ["kinfold search expiry --in review --newest", "in one session, newest first"],
    ],
  },
  {
    name: "export",
    summary: "Write a transcript to standard output or a file.",
    args: [SESSION],
    options: [
      {
        flags: "--format <format>",
        summary: "the format (default: markdown)",
        choices: ["markdown", "text", "json"],
      },
      { flags: "--tree", summary: "the whole tree it belongs to" },
      {
        flags: "-o, --output <file>",
        summary: "write to this file instead of standard output",
        completes: "file",
      },
    ],
    examples: [["kinfold export release --tree -o release.md", "the whole family in one file"]],
    exits: ["done", "failed", "refused", "noDaemon"],
  },
];
