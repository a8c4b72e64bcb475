import type { CommandSpec } from "./table.ts";

export const OPERATE: readonly CommandSpec[] = [
  {
    name: "up",
    summary: "Start the daemon in the background.",
    about: "If it already runs, says so and changes nothing.",
    options: [
      { flags: "--foreground", summary: "stay in this terminal; Ctrl-C stops it" },
      { flags: "--port <port>", summary: "the port (default: 4680; 0 picks a free one)", kind: "int" },
      { flags: "--host <host>", summary: "the address to listen on (default: 127.0.0.1)" },
      { flags: "--store <store>", summary: "sqlite, or a postgres:// address" },
    ],
    examples: [
      ["kinfold up", "with the embedded store"],
      ["kinfold up --store postgres://localhost/kinfold", "with PostgreSQL"],
    ],
    exits: ["done", "failed", "refused"],
  },
  {
    name: "down",
    summary: "Stop the daemon. Nothing is lost: unfinished work continues when it starts again.",
    options: [{ flags: "--force", summary: "kill it with SIGKILL if it has not stopped within ten seconds" }],
    examples: [["kinfold down && kinfold up", "after an upgrade"]],
    exits: ["done", "failed"],
  },
  {
    name: "import",
    summary: "Import the sessions that agents left on disk, and keep them up to date from then on.",
    about:
      "Imports the sessions and sub-agents of Claude Code, Codex, OpenCode and Gemini CLI, each with a state backed by evidence. Never writes to their files. After Ctrl-C the daemon continues in the background.",
    options: [
      {
        flags: "--exclude <folders>",
        summary: "project folders to leave out, as globs separated by commas; sessions already imported stay",
      },
    ],
    examples: [
      ["kinfold import", "imports everything and reports what was found"],
      ["kinfold import --exclude '~/private/**,/tmp/**'", "everything except these folders"],
    ],
    exits: ["done", "failed", "noDaemon"],
  },
  {
    name: "mcp",
    summary: "Serve Kinfold's tools to an agent over standard input and output (MCP).",
    about:
      "Put this command into an agent's MCP configuration, with an absolute path. A client that Kinfold does not know becomes a new session. The command answers at once and starts the daemon in the background.",
    examples: [["claude mcp add kinfold -- kinfold mcp", "Claude Code starts it with each session"]],
    exits: ["done", "failed"],
  },
  {
    name: "config",
    summary: "List every setting, its value and where it comes from.",
    args: [
      {
        name: "action",
        summary: "path: print where the file is; edit: open it in your editor",
        choices: ["path", "edit"],
      },
    ],
    examples: [["kinfold config edit", "opens $EDITOR, then checks the file"]],
    exits: ["done", "failed", "refused"],
  },
  {
    name: "paths",
    summary: "Print where everything is: database, token, log, rollouts.",
    exits: ["done"],
  },
  {
    name: "logs",
    summary: "Print the daemon's log.",
    options: [
      { flags: "-f, --follow", summary: "keep printing new lines; Ctrl-C ends it" },
      { flags: "-n, --lines <count>", summary: "how many lines from the end (default: 50)", kind: "int" },
    ],
    examples: [["kinfold logs -f", "follow it"]],
    exits: ["done", "failed"],
  },
  {
    name: "backup",
    summary: "Write a consistent copy of the embedded store while the daemon runs.",
    args: [
      {
        name: "file",
        summary: "the file to write; it must not exist yet",
        required: true,
        completes: "file",
      },
    ],
    examples: [["kinfold backup ~/kinfold-$(date +%F).db", "with the date in its name"]],
  },
  {
    name: "restore",
    summary: "Restore the embedded store after it was damaged or lost. The daemon must be stopped.",
    about:
      "Restores from one of: a file that kinfold backup wrote; the rollouts, whose sessions come back ended and marked as rebuilt; what can still be read of the store; or nothing. The old files are moved into a folder before-restore-… in the home, never deleted.",
    args: [{ name: "file", summary: "a file that kinfold backup wrote", completes: "file" }],
    options: [
      { flags: "--from-rollouts", summary: "transcripts of all sessions, from the rollouts in the home" },
      { flags: "--as-is", summary: "what can still be read of the store; the newest commits may be lost" },
      { flags: "--empty", summary: "an empty store" },
    ],
    examples: [
      ["kinfold restore ~/kinfold-2026-07-01.db", "a backup"],
      ["kinfold restore --from-rollouts", "if there is no backup"],
    ],
    exits: ["done", "failed", "refused"],
  },
  {
    name: "doctor",
    summary: "Check this machine: what works, and how to fix what does not.",
    exits: ["done", "failed"],
  },
  {
    name: "completion",
    summary: "Print a completion script for your shell.",
    args: [{ name: "shell", summary: "bash, zsh or fish", required: true, choices: ["bash", "zsh", "fish"] }],
    examples: [
      ["source <(kinfold completion bash)", "in ~/.bashrc"],
      ["kinfold completion fish > ~/.config/fish/completions/kinfold.fish", "for fish"],
    ],
    exits: ["done", "refused"],
  },
];
