import type { Permission } from "../../contract/index.ts";
import type { ArgumentRow, CommandRow, OptionRow } from "./table.ts";

const PERMISSIONS = ["read-only", "ask", "workspace", "full"] as const satisfies readonly Permission[];

const PROMPT: ArgumentRow = {
  name: "prompt",
  summary: "what to do, where, what to report; - reads it from standard input",
  required: false,
  many: true,
};

const SPAWN_OPTIONS: readonly OptionRow[] = [
  { flags: "--name <name>", summary: "a short label; it is accepted wherever an id is" },
  { flags: "--agent <agent>", summary: "claude, codex, gemini, opencode, sim, …" },
  { flags: "--model <model>", summary: "the agent's model" },
  { flags: "--cwd <folder>", summary: "where it works (default: here)", completes: "folder" },
  { flags: "--profile <profile>", summary: "a named way to work: reviewer, tester, …; see kinfold profiles" },
  { flags: "--permission <mode>", summary: "what it may do", choices: PERMISSIONS },
  { flags: "--scope <scope>", summary: "whose memory this is; only its own sessions see it" },
  { flags: "--parent <session>", summary: "spawn it as a child of this session", completes: "session" },
  {
    flags: "--inherit <how>",
    summary: "what a child is given of its parent (default: brief)",
    choices: ["none", "brief", "tail", "fork"],
  },
  { flags: "--usd <amount>", summary: "stop it when it has spent so many dollars", kind: "number" },
  { flags: "--tokens <count>", summary: "stop it when it has used so many tokens", kind: "int" },
  { flags: "--turns <count>", summary: "at most so many turns", kind: "int" },
  { flags: "--minutes <minutes>", summary: "at most so long at work", kind: "number" },
  { flags: "--no-callback", summary: "do not tell the parent when it ends" },
  { flags: "--key <key>", summary: "an idempotency key: the same key starts nothing twice" },
];

/** Commands that start or change work. */
export const START: readonly CommandRow[] = [
  {
    name: "demo",
    summary: "Watch a family of four at work; needs no model and no key.",
    about:
      "Starts a daemon of its own in a temporary home, raises three generations of the sim agent, kills the daemon once on the way, starts it again, and says what was seen. Everything is removed at the end.",
    args: [],
    options: [{ flags: "--keep", summary: "keep the demo's home and daemon for a closer look" }],
    examples: [["kinfold demo", "about ten seconds"]],
    exits: ["done", "failed"],
  },
  {
    name: "spawn",
    summary: "Start a session, or with --parent a child session.",
    about: "Answers at once; the session works in the background. Starts the daemon if it is not running.",
    args: [PROMPT],
    options: SPAWN_OPTIONS,
    examples: [
      ['kinfold spawn --name release "Prepare release 2.4"', "a root session"],
      [
        'kinfold spawn --parent release --name tests "Run the tests"',
        "a child; its result goes to its parent",
      ],
      ['kinfold spawn --profile reviewer --usd 2 "Review src/auth"', "with a profile and a budget"],
      ["kinfold spawn - < task.md", "a long prompt from a file"],
    ],
    exits: ["done", "refused", "noDaemon"],
  },
  {
    name: "run",
    summary: "Start a session, wait for it, print its result.",
    about:
      "The result goes to standard output, progress to a terminal only. A session that is still at work when the time is up goes on; stop it with kinfold cancel.",
    args: [PROMPT],
    options: [
      ...SPAWN_OPTIONS,
      {
        flags: "--timeout <time>",
        summary: "how long to wait: 90s, 30m, 2h (default: no limit)",
        kind: "duration",
      },
    ],
    examples: [
      ['kinfold run --agent codex "Update minor versions." && git commit -am bump', "in a script"],
      ['kinfold run --timeout 10m --json "Review src/auth" | jq -r .result', "as JSON"],
    ],
    exits: ["done", "failed", "refused", "cancelled", "interrupted", "outOfTime", "noDaemon"],
  },
  {
    name: "tell",
    summary: "Send a message to a session.",
    about: "It enters the running turn where the agent takes messages there, else it comes right after it.",
    args: [
      { name: "session", summary: "id, short id or name", required: true, completes: "session" },
      { ...PROMPT, name: "message", summary: "the message; - reads it from standard input" },
    ],
    options: [
      { flags: "--follow-up", summary: "after the running turn, never into it" },
      { flags: "--restart", summary: "cut the running turn where the agent takes messages only so" },
      { flags: "--key <key>", summary: "an idempotency key: the same key is delivered once" },
    ],
    examples: [['kinfold tell docs "Use the small dataset"', "into its running turn, or right after it"]],
    exits: ["done", "refused", "noDaemon"],
  },
  {
    name: "wait",
    summary: "Wait until a session has finished; print its result.",
    args: [{ name: "session", summary: "id, short id or name", required: true, completes: "session" }],
    options: [
      {
        flags: "--timeout <time>",
        summary: "how long to wait: 90s, 30m, 2h (default: no limit)",
        kind: "duration",
      },
      { flags: "--turn", summary: "only until the running turn has settled" },
    ],
    examples: [["kinfold wait release --timeout 30m", "prints its result; exit code 5 when the time is up"]],
    exits: ["done", "failed", "refused", "cancelled", "interrupted", "outOfTime", "noDaemon"],
  },
  {
    name: "limit",
    summary: "Change what a session and those below it may spend.",
    about:
      "One that waits for its budget goes on by itself. Without flags it says what holds and what is used.",
    args: [{ name: "session", summary: "id, short id or name", required: true, completes: "session" }],
    options: [
      { flags: "--usd <amount>", summary: "so many dollars in all", kind: "number" },
      { flags: "--tokens <count>", summary: "so many tokens in all", kind: "int" },
      { flags: "--turns <count>", summary: "so many turns in all", kind: "int" },
      { flags: "--minutes <minutes>", summary: "so long at work in all", kind: "number" },
      { flags: "--none", summary: "take all its limits away" },
    ],
    examples: [
      ["kinfold limit release --usd 20", "it may spend 20 dollars in all, what is spent included"],
      ["kinfold limit release", "what holds, and what is used"],
    ],
    exits: ["done", "refused", "noDaemon"],
  },
  {
    name: "cancel",
    summary: "Stop a session and all below it, and close them.",
    about:
      "Closed sessions take no more messages until you reopen them, also those that had finished. On a terminal it says what will happen and asks first.",
    args: [{ name: "session", summary: "id, short id or name", required: true, completes: "session" }],
    options: [
      { flags: "--turn", summary: "stop only the running turn; session and children stay" },
      { flags: "--reason <text>", summary: "why; its parent reads this" },
      { flags: "-y, --yes", summary: "do not ask" },
    ],
    examples: [['kinfold cancel docs --reason "wrong branch"', "it and all below it"]],
    exits: ["done", "failed", "refused", "noDaemon"],
  },
  {
    name: "reopen",
    summary: "Let a cancelled session take messages again.",
    about: "Its messages of before stay void, and sessions below it stay ended; reopen those by themselves.",
    args: [{ name: "session", summary: "id, short id or name", required: true, completes: "session" }],
    options: [],
    examples: [["kinfold reopen docs", "then: kinfold tell docs 'Go on'"]],
    exits: ["done", "refused", "noDaemon"],
  },
];
