import type { CommandSpec } from "./table.ts";

export const ACCESS: readonly CommandSpec[] = [
  {
    name: "agents",
    summary: "List the agents on this machine: version, sign-in, what is missing. Or install an adapter.",
    about:
      "Kinfold drives Claude Code and Codex through a small adapter that uses the program you installed. The action add installs the adapter into Kinfold's home.",
    args: [
      { name: "action", summary: "add: install an adapter", choices: ["add"] },
      { name: "agent", summary: "claude or codex" },
    ],
    examples: [["kinfold agents add claude", "installs the adapter for Claude Code, about 55 MB"]],
    exits: ["done", "failed", "refused", "noDaemon"],
  },
  {
    name: "profiles",
    summary: "List the profiles: built in, your own, and the project's.",
    about:
      "Your own profiles are Markdown files in the profiles folder of Kinfold's home; a project's are in .kinfold/agents. A project's files are used only after you have trusted them; a changed file must be trusted again.",
    args: [
      {
        name: "action",
        summary: "show: print one profile in full; trust: allow a project's files",
        choices: ["show", "trust"],
      },
      { name: "subject", summary: "the profile to show, or the project's folder" },
    ],
    options: [{ flags: "-y, --yes", summary: "do not ask for confirmation" }],
    examples: [
      ["kinfold profiles show reviewer", "prints its settings and instructions"],
      ["kinfold profiles trust .", "trusts the files of the current project"],
    ],
    exits: ["done", "refused", "cancelled"],
  },
  {
    name: "tokens",
    summary: "Create, list and revoke API keys for scripts and other programs.",
    about:
      "A new key's secret is printed once, alone, on standard output. A revoked key is refused from its next request on, and its open streams end.",
    args: [
      {
        name: "action",
        summary: "create, ls or revoke (default: ls)",
        choices: ["create", "ls", "revoke"],
      },
      { name: "name", summary: "the key's name; for revoke also its id" },
    ],
    options: [
      {
        flags: "--can <rights>",
        summary: "its rights, separated by commas: read, spawn, answer, fire, cancel (default: read)",
      },
      { flags: "--scope <scope>", summary: "only sessions of this scope (default: all scopes)" },
      {
        flags: "--ceiling <mode>",
        summary: "the highest permission its sessions may have (default: workspace)",
      },
      {
        flags: "--root <folders>",
        summary:
          "folders its sessions may work in, separated by commas; / means any (default with spawn: the current one)",
      },
      {
        flags: "--expires <time>",
        summary: "how long it is valid: 12h, 30d (default: no expiry)",
        kind: "duration",
      },
    ],
    examples: [
      ["export KINFOLD_TOKEN=$(kinfold tokens create ci --can spawn,read --expires 30d)", "for a script"],
      ["kinfold tokens revoke ci", "refused within a second"],
    ],
  },
];
