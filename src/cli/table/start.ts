import type { Permission } from "../../contract/index.ts";
import { SESSION } from "./observe.ts";
import type { ArgumentRow, CommandSpec, OptionRow } from "./table.ts";

const PERMISSIONS = ["read-only", "ask", "workspace", "full"] as const satisfies readonly Permission[];

const PROMPT: ArgumentRow = {
  name: "prompt",
  summary: "what to do, where, what to report; - reads it from standard input",
  many: true,
};

const SPAWN_OPTIONS: readonly OptionRow[] = [
  { flags: "--name <name>", summary: "a short name, accepted wherever an id is" },
  { flags: "--agent <agent>", summary: "claude, codex, gemini, opencode, sim, …" },
  { flags: "--model <model>", summary: "the agent's model" },
  {
    flags: "--cwd <folder>",
    summary: "the folder it works in (default: the current one)",
    completes: "folder",
  },
  {
    flags: "--profile <profile>",
    summary: "a named way to start a session: reviewer, tester, …; see kinfold profiles",
  },
  { flags: "--permission <mode>", summary: "what it may do", choices: PERMISSIONS },
  { flags: "--scope <scope>", summary: "whose memory this is; only sessions of this scope see it" },
  { flags: "--parent <session>", summary: "spawn it as a child of this session", completes: "session" },
  {
    flags: "--inherit <how>",
    summary: "the context that a child gets from its parent (default: brief)",
    choices: ["none", "brief", "tail", "fork"],
  },
  { flags: "--usd <amount>", summary: "the most dollars it may spend", kind: "number" },
  { flags: "--tokens <count>", summary: "the most tokens it may use", kind: "int" },
  { flags: "--turns <count>", summary: "the most turns it may take", kind: "int" },
  { flags: "--minutes <minutes>", summary: "the most minutes it may work", kind: "number" },
  { flags: "--no-callback", summary: "do not notify the parent when it ends" },
  { flags: "--key <key>", summary: "an idempotency key: the same key never starts a second session" },
];

const TIMEOUT: OptionRow = {
  flags: "--timeout <time>",
  summary: "how long to wait: 90s, 30m, 2h (default: no limit)",
  kind: "duration",
};

export const START: readonly CommandSpec[] = [
  {
    name: "demo",
    summary: "Watch a family of four sessions at work; needs no model and no API key.",
    about:
      "Starts a separate daemon in a temporary home, spawns three generations of the sim agent, kills the daemon once, starts it again, and reports whether anything was lost. Removes everything at the end.",
    options: [{ flags: "--keep", summary: "keep the demo's home and daemon, to look at them" }],
    examples: [["kinfold demo", "takes about ten seconds"]],
    exits: ["done", "failed"],
  },
  {
    name: "spawn",
    summary: "Start a session, or with --parent a child session.",
    about: "Returns at once; the session works in the background. Starts the daemon if it is not running.",
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
  },
  {
    name: "run",
    summary: "Start a session, wait for it, print its result.",
    about:
      "The result goes to standard output; progress is shown only on a terminal. A session that is still at work after the timeout goes on; stop it with kinfold cancel.",
    args: [PROMPT],
    options: [...SPAWN_OPTIONS, TIMEOUT],
    examples: [
      ['kinfold run --agent codex "Update minor versions." && git commit -am bump', "in a script"],
      ['kinfold run --timeout 10m --json "Review src/auth" | jq -r .result', "as JSON"],
    ],
    exits: ["done", "failed", "refused", "cancelled", "interrupted", "outOfTime", "noDaemon"],
  },
  {
    name: "tell",
    summary: "Send a message to a session.",
    about:
      "It enters the running turn if the agent accepts messages during a turn; otherwise it is delivered right after that turn.",
    args: [SESSION, { ...PROMPT, name: "message", summary: "the message; - reads it from standard input" }],
    options: [
      { flags: "--follow-up", summary: "deliver it after the running turn, never into it" },
      { flags: "--restart", summary: "interrupt the running turn if the agent accepts no message during it" },
      { flags: "--key <key>", summary: "an idempotency key: a message with the same key is delivered once" },
    ],
    examples: [['kinfold tell docs "Use the small dataset"', "into its running turn, or right after it"]],
  },
  {
    name: "wait",
    summary: "Wait until a session has finished; print its result.",
    args: [SESSION],
    options: [TIMEOUT, { flags: "--turn", summary: "wait only until the running turn has settled" }],
    examples: [["kinfold wait release --timeout 30m", "prints its result; exit code 5 when the time is up"]],
    exits: ["done", "failed", "refused", "cancelled", "interrupted", "outOfTime", "noDaemon"],
  },
  {
    name: "limit",
    summary: "Show or change how much a session and its descendants may use.",
    about:
      "A session that waits for budget continues by itself when its limit is raised. Without options, prints the limits and the usage so far.",
    args: [SESSION],
    options: [
      { flags: "--usd <amount>", summary: "the most dollars in total", kind: "number" },
      { flags: "--tokens <count>", summary: "the most tokens in total", kind: "int" },
      { flags: "--turns <count>", summary: "the most turns in total", kind: "int" },
      { flags: "--minutes <minutes>", summary: "the most minutes of work in total", kind: "number" },
      { flags: "--none", summary: "remove all its limits" },
    ],
    examples: [
      ["kinfold limit release --usd 20", "20 dollars in total, including what is already spent"],
      ["kinfold limit release", "prints its limits and its usage"],
    ],
  },
  {
    name: "cancel",
    summary: "Stop a session and all its descendants, and close them.",
    about:
      "Closed sessions accept no messages until you reopen them; finished descendants are closed too. On a terminal, the command says what will happen and asks first.",
    args: [SESSION],
    options: [
      { flags: "--turn", summary: "stop only the running turn; the session and its children stay open" },
      { flags: "--reason <text>", summary: "the reason, shown to its parent" },
      { flags: "-y, --yes", summary: "do not ask for confirmation" },
    ],
    examples: [['kinfold cancel docs --reason "wrong branch"', "stops it and all its descendants"]],
    exits: ["done", "failed", "refused", "noDaemon"],
  },
  {
    name: "reopen",
    summary: "Let a cancelled session accept messages again.",
    about:
      "Messages that it had not read stay void, and its descendants stay ended; reopen those one by one.",
    args: [SESSION],
    examples: [["kinfold reopen docs", "then: kinfold tell docs 'Go on'"]],
  },
];
