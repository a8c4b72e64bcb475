// Prints what the real agents have been proven to do, and writes it to docs/agents.md.
import { writeFileSync } from "node:fs";
import type { Enforcement } from "../src/drivers/port.ts";
import { createDrivers } from "../src/drivers/registry.ts";
import { VENDORS } from "../src/drivers/vendors/index.ts";
import { silentLog } from "../src/log.ts";
import { PARENT_NAMES, PROGRAM_NAMES, PROGRAMS } from "../test/agents/support/cache.ts";
import { readCells, ROWS } from "../test/agents/support/cells.ts";
import type { Cell, Role, Row } from "../test/agents/support/cells.ts";

const PAGE = new URL("../docs/agents.md", import.meta.url);
const ROLES: readonly Role[] = ["parent", "child"];

/** Why pi has no result in these rows. pi is never a parent, because it cannot use our tools. */
const PI_WHY_NOT: Partial<Record<Row, string>> = {
  "sees and calls the tools": "knows no MCP",
  spawns: "knows no MCP",
  "is called back while idle": "is no parent",
  waits: "is no parent",
  "asks a question that its parent answers": "knows no MCP",
  "has a permission request answered": "asks nobody: reads only, or may do all",
};

/** For a row that applies to one role only: what the table shows for the other role. */
const WHY_NOT: Partial<Record<Row, Partial<Record<Role, string>>>> = {
  spawns: { child: "as parent" },
  "is called back while idle": { child: "as parent" },
  waits: { child: "as parent" },
  "reports its result once": { parent: "as child" },
  "takes a message while it works": { parent: "as child" },
  "fails when its model fails": { parent: "as child" },
};

const pi = { title: "pi", enforces: await enforcedByPi(), modes: undefined };
const cells = PROGRAM_NAMES.flatMap(readCells);
const lines = matrix(cells);
console.log(lines.join("\n"));
const missing = PROGRAM_NAMES.filter((name) => !cells.some((cell) => cell.agent === name));
if (missing.length === 0) writeFileSync(PAGE, page(lines));
else console.log(`\nNot written to the reference: ${missing.join(", ")} not tested yet.`);

function matrix(all: readonly Cell[]): string[] {
  const parents = PARENT_NAMES.flatMap((agent) => ROLES.map((role) => ({ agent, role })));
  const columns = [...parents, { agent: "pi" as const, role: "child" as const }];
  const head = columns.map(({ agent, role }) => `${agent} as ${role}`);
  const body = ROWS.map((row) => [row, ...columns.map(({ agent, role }) => word(all, { agent, role, row }))]);
  return table(["", ...head], body);
}

function word(all: readonly Cell[], at: { agent: string; role: Role; row: Row }): string {
  const found = all.filter((one) => one.agent === at.agent && one.role === at.role && one.row === at.row);
  const cell = found.find((one) => !one.isProven) ?? found[0];
  if (cell === undefined) return whyNot(at) ?? "not yet";
  if (!cell.isProven) return `✗ ${cell.note.split("\n", 1)[0]?.replaceAll("|", "/") ?? ""}`;
  return cell.note === "" ? "✓" : `✓ ${cell.note}`;
}

function whyNot({ agent, role, row }: { agent: string; role: Role; row: Row }): string | undefined {
  return (agent === "pi" ? PI_WHY_NOT[row] : undefined) ?? WHY_NOT[row]?.[role];
}

function page(body: readonly string[]): string {
  const versions = PROGRAM_NAMES.map((name) => {
    const vendor = VENDORS.find((one) => one.name === name);
    const adapter = vendor !== undefined && "adapter" in vendor.speaks ? vendor.speaks.adapter : null;
    const itself = name === "pi" ? "itself, in its own protocol" : "itself";
    const through = adapter === null ? itself : `${adapter.package} ${adapter.version}`;
    return [vendor?.title ?? name, PROGRAMS[name].version, through];
  });
  return [
    "# What the tests prove about real agents",
    "",
    "`npm run test:agents` writes this page. It runs the real programs with a real daemon and a scripted model on loopback. Each agent is",
    "parent and child of its own kind; pi is the child of a sim. A message that arrives during a turn is *injected* into the turn, *queued*",
    "behind the running step of the same turn, or *restarts* the turn (only if the sender asks for that).",
    "",
    ...table(["agent", "version", "speaks through"], versions),
    "",
    ...body,
    "",
    "## What holds an agent to its mode",
    "",
    "`os`: a sandbox of the operating system. `agent`: the agent's own permission check. `asked`: the agent asks, and Kinfold's policy or a",
    "parent answers; a policy is not a sandbox. `none`: nothing would enforce the mode, so the agent is not started in it.",
    "",
    ...table(
      ["agent", "read-only", "ask", "workspace", "full"],
      [...VENDORS, pi].map(({ title, enforces, modes }) => [
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

/** Asks pi's driver what enforces each mode. For the other agents, the list of vendors says it. */
async function enforcedByPi(): Promise<Enforcement> {
  const options = { config: { agents: {} }, simDir: "sim", sandbox: "auto", log: silentLog } as const;
  const agent = await createDrivers(options).get("pi")?.probe();
  if (agent?.enforces === undefined) throw new Error("pi does not say what holds it");
  return agent.enforces;
}

function table(head: readonly string[], body: readonly (readonly string[])[]): string[] {
  const line = (words: readonly string[]): string => `| ${words.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...body.map(line)];
}
