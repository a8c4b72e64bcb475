import type { CommandRow } from "./table.ts";

/** Commands about agents, profiles and API keys. */
export const ACCESS: readonly CommandRow[] = [
  {
    name: "agents",
    summary: "The agents of this machine: version, signed in, what is missing; or install an adapter.",
    about:
      "Claude Code and Codex are driven through a small adapter that uses your own program; add installs it into Kinfold's home.",
    args: [
      { name: "action", summary: "add: install an adapter", required: false, choices: ["add"] },
      { name: "agent", summary: "claude or codex", required: false },
    ],
    options: [],
    examples: [["kinfold agents add claude", "installs the adapter for Claude Code, about 55 MB"]],
    exits: ["done", "failed", "refused", "noDaemon"],
  },
  {
    name: "profiles",
    summary: "The profiles there are: built in, your own, and the project's.",
    about:
      "Your own are Markdown files in the profiles folder of Kinfold's home; a project's are in .kinfold/agents. A project's files are used only after you have trusted them as they are, and again after every change.",
    args: [
      {
        name: "action",
        summary: "show: one of them whole; trust: use a project's files",
        required: false,
        choices: ["show", "trust"],
      },
      { name: "subject", summary: "the profile to show, or the project's folder", required: false },
    ],
    options: [{ flags: "-y, --yes", summary: "do not ask" }],
    examples: [
      ["kinfold profiles show reviewer", "its settings and instructions"],
      ["kinfold profiles trust .", "the files of the project you are in"],
    ],
    exits: ["done", "refused", "cancelled"],
  },
  {
    name: "tokens",
    summary: "API keys for scripts and other programs: create, list, revoke.",
    about:
      "A new key's secret is printed once, alone, on standard output. A revoked key is refused from its next request on, and its open streams end.",
    args: [
      {
        name: "action",
        summary: "create, ls or revoke (default: ls)",
        required: false,
        choices: ["create", "ls", "revoke"],
      },
      { name: "name", summary: "the key's name; for revoke also its id", required: false },
    ],
    options: [
      { flags: "--can <rights>", summary: "read, spawn, answer, fire, cancel; with commas (default: read)" },
      { flags: "--scope <scope>", summary: "only sessions of this scope (default: all)" },
      { flags: "--ceiling <mode>", summary: "the most its sessions may be allowed (default: workspace)" },
      {
        flags: "--root <folders>",
        summary: "folders its sessions may work in, with commas; / is any (default with spawn: this one)",
      },
      { flags: "--expires <time>", summary: "after this time: 12h, 30d (default: never)", kind: "duration" },
    ],
    examples: [
      ["export KINFOLD_TOKEN=$(kinfold tokens create ci --can spawn,read --expires 30d)", "for a script"],
      ["kinfold tokens revoke ci", "refused within a second"],
    ],
    exits: ["done", "refused", "noDaemon"],
  },
];
