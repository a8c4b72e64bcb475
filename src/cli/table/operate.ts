import type { CommandRow } from "./table.ts";

/** Commands about the daemon and this machine. */
export const OPERATE: readonly CommandRow[] = [
  {
    name: "up",
    summary: "Start the daemon in the background.",
    about: "If it already runs, says so and changes nothing.",
    args: [],
    options: [
      { flags: "--foreground", summary: "stay in this terminal; Ctrl-C stops it" },
      { flags: "--port <port>", summary: "the port (default: 4680; 0 picks a free one)", kind: "int" },
      { flags: "--host <host>", summary: "the address to listen on (default: 127.0.0.1)" },
      { flags: "--store <store>", summary: "sqlite, or a postgres:// address" },
    ],
    examples: [
      ["kinfold up", "on the embedded store"],
      ["kinfold up --store postgres://localhost/kinfold", "on PostgreSQL"],
    ],
    exits: ["done", "failed", "refused"],
  },
  {
    name: "down",
    summary: "Stop the daemon. Nothing is lost: what was at work goes on when it starts again.",
    args: [],
    options: [{ flags: "--force", summary: "end it with SIGKILL if it has not stopped within ten seconds" }],
    examples: [["kinfold down && kinfold up", "after an upgrade"]],
    exits: ["done", "failed"],
  },
  {
    name: "import",
    summary: "Read the sessions that agents left on disk, and keep up with them from then on.",
    about:
      "Claude Code, Codex, OpenCode and Gemini CLI: their sessions and sub-agents, with a state that can be defended. Nothing of theirs is ever written to. Ctrl-C leaves the reading to the daemon.",
    args: [],
    options: [
      {
        flags: "--exclude <folders>",
        summary: "project folders to leave out, as globs separated by commas; what is there already stays",
      },
    ],
    examples: [
      ["kinfold import", "everything, and say what was found"],
      ["kinfold import --exclude '~/private/**,/tmp/**'", "all but these"],
    ],
    exits: ["done", "failed", "noDaemon"],
  },
  {
    name: "mcp",
    summary: "Serve the tools to an agent over standard input and output.",
    about:
      "For an agent's own configuration, as an absolute path: a client that is not otherwise known becomes a session of its own. It answers at once and starts the daemon behind it.",
    args: [],
    options: [],
    examples: [["claude mcp add kinfold -- kinfold mcp", "Claude Code starts it with each session"]],
    exits: ["done", "failed"],
  },
  {
    name: "config",
    summary: "Every setting, its value and where it comes from.",
    args: [
      {
        name: "action",
        summary: "path: where the file is; edit: open it in your editor",
        required: false,
        choices: ["path", "edit"],
      },
    ],
    options: [],
    examples: [["kinfold config edit", "opens $EDITOR, then checks the file"]],
    exits: ["done", "failed", "refused"],
  },
  {
    name: "paths",
    summary: "Where everything is: database, token, log, rollouts.",
    args: [],
    options: [],
    examples: [],
    exits: ["done"],
  },
  {
    name: "logs",
    summary: "The daemon's log.",
    args: [],
    options: [
      { flags: "-f, --follow", summary: "go on as it grows; Ctrl-C ends" },
      { flags: "-n, --lines <count>", summary: "how many lines from the end (default: 50)", kind: "int" },
    ],
    examples: [["kinfold logs -f", "follow it"]],
    exits: ["done", "failed"],
  },
  {
    name: "backup",
    summary: "Write a consistent copy of the embedded store, while it runs.",
    args: [
      { name: "file", summary: "the file to write; it may not exist yet", required: true, completes: "file" },
    ],
    options: [],
    examples: [["kinfold backup ~/kinfold-$(date +%F).db", "with the date in its name"]],
    exits: ["done", "refused", "noDaemon"],
  },
  {
    name: "restore",
    summary: "Make the embedded store again after it was damaged or lost. The daemon must be down.",
    about:
      "From one of: a file that kinfold backup made; the rollouts, whose sessions come back ended and marked as rebuilt; what can still be read of the store; or nothing. The files that were there are moved into a folder before-restore-… of the home, never deleted.",
    args: [{ name: "file", summary: "a file that kinfold backup made", required: false, completes: "file" }],
    options: [
      { flags: "--from-rollouts", summary: "transcripts of all sessions, from the rollouts in the home" },
      { flags: "--as-is", summary: "what can still be read; the newest commits may be gone" },
      { flags: "--empty", summary: "start with nothing" },
    ],
    examples: [
      ["kinfold restore ~/kinfold-2026-07-01.db", "a backup"],
      ["kinfold restore --from-rollouts", "where there is no backup"],
    ],
    exits: ["done", "failed", "refused"],
  },
  {
    name: "doctor",
    summary: "Check this machine: what works, and what to do about what does not.",
    args: [],
    options: [],
    examples: [],
    exits: ["done", "failed"],
  },
  {
    name: "completion",
    summary: "A completion script for your shell.",
    args: [{ name: "shell", summary: "bash, zsh or fish", required: true, choices: ["bash", "zsh", "fish"] }],
    options: [],
    examples: [
      ["source <(kinfold completion bash)", "in ~/.bashrc"],
      ["kinfold completion fish > ~/.config/fish/completions/kinfold.fish", "for fish"],
    ],
    exits: ["done", "refused"],
  },
];
