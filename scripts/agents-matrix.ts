// Prints what the real agents have been proven to do, and writes it to the reference.
import { writeFileSync } from "node:fs";
import { VENDORS } from "../src/drivers/vendors/index.ts";
import { PARENT_NAMES, PROGRAMS } from "../test/agents/support/cache.ts";
import { readCells, ROWS } from "../test/agents/support/cells.ts";
import type { Cell, Role, Row } from "../test/agents/support/cells.ts";

const PAGE = new URL("../docs/agents.md", import.meta.url);
const ROLES: readonly Role[] = ["parent", "child"];

/** Rows that concern only one end. */
const WHY_NOT: Partial<Record<Row, Partial<Record<Role, string>>>> = {
  spawns: { child: "as parent" },
  "is called back while idle": { child: "as parent" },
  waits: { child: "as parent" },
  "reports its result once": { parent: "as child" },
  "takes a message while it works": { parent: "as child" },
  "fails when its model fails": { parent: "as child" },
};

const cells = PARENT_NAMES.flatMap(readCells);
const lines = matrix(cells);
console.log(lines.join("\n"));
const missing = PARENT_NAMES.filter((name) => !cells.some((cell) => cell.agent === name));
if (missing.length === 0) writeFileSync(PAGE, page(lines));
else console.log(`\nNot written to the reference: ${missing.join(", ")} not tested yet.`);

function matrix(all: readonly Cell[]): string[] {
  const columns = PARENT_NAMES.flatMap((agent) => ROLES.map((role) => ({ agent, role })));
  const head = columns.map(({ agent, role }) => `${agent} as ${role}`);
  const body = ROWS.map((row) => [row, ...columns.map(({ agent, role }) => word(all, { agent, role, row }))]);
  return table(["", ...head], body);
}

function word(all: readonly Cell[], at: { agent: string; role: Role; row: Row }): string {
  const cell = all.find((one) => one.agent === at.agent && one.role === at.role && one.row === at.row);
  if (cell === undefined) return WHY_NOT[at.row]?.[at.role] ?? "not yet";
  if (!cell.isProven) return `✗ ${cell.note.split("\n", 1)[0]?.replaceAll("|", "/") ?? ""}`;
  return cell.note === "" ? "✓" : `✓ ${cell.note}`;
}

function page(body: readonly string[]): string {
  const versions = PARENT_NAMES.map((name) => {
    const vendor = VENDORS.find((one) => one.name === name);
    const adapter = vendor !== undefined && "adapter" in vendor.speaks ? vendor.speaks.adapter : null;
    const through = adapter === null ? "itself" : `${adapter.package} ${adapter.version}`;
    return [vendor?.title ?? name, PROGRAMS[name].version, through];
  });
  return [
    "# What the real agents are proven to do",
    "",
    "Written by `npm run test:agents`: real programs, a real daemon, a scripted model on loopback. Each agent is parent and child of",
    "its own kind. A message that comes while an agent works is *injected* into its turn, *queued* behind the running step of the",
    "same turn, or *restarts* the turn (only where the sender asks for that).",
    "",
    ...table(["agent", "version", "speaks ACP through"], versions),
    "",
    ...body,
    "",
    "## What holds an agent to its mode",
    "",
    "`os`: a sandbox of the operating system. `agent`: the agent's own gate. `asked`: the agent asks, and Kinfold's policy or a parent",
    "answers; a policy is not a wall.",
    "",
    ...table(
      ["agent", "read-only", "ask", "workspace", "full"],
      VENDORS.map(({ title, enforces, modes }) => [
        title,
        ...(["read-only", "ask", "workspace", "full"] as const).map((mode) => {
          const words = modes?.[mode].map((one) => `\`${one}\``).join(", else ");
          return words === undefined ? enforces[mode] : `${enforces[mode]} (${words})`;
        }),
      ]),
    ),
    "",
  ].join("\n");
}

function table(head: readonly string[], body: readonly (readonly string[])[]): string[] {
  const line = (words: readonly string[]): string => `| ${words.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...body.map(line)];
}
