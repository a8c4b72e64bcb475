import { join } from "node:path";
import { prepareHome } from "../../config/index.ts";
import type { Agent } from "../../contract/index.ts";
import type { Call } from "../call.ts";
import { openConnection, tryConnection } from "../daemon/connection.ts";
import { failed, Failure, refused } from "../failure.ts";
import { type Cell, gridLines } from "../terminal/grid.ts";
import { homeOf } from "../daemon/home.ts";
import type { AdapterPackage, Vendor } from "../doctor/own-agents.ts";
import { inlineBlock } from "../terminal/screen.ts";
import { cleanLine } from "../terminal/text.ts";
import { bytes } from "../../text/quantity.ts";

export async function run(call: Call): Promise<void> {
  const [action, name] = call.args;
  if (action === "add") return await add(call, name);
  const { client } = await openConnection(call);
  const { agents } = await client.models({});
  if (call.io.json) return call.io.answer({ agents });
  const columns = [
    { title: "AGENT" },
    { title: "VERSION" },
    { title: "SIGNED IN" },
    { title: "MODEL", dropped: 1 },
    { title: "WHAT TO DO", flexible: true },
  ];
  const look = { columns: call.io.columns(), paint: call.io.paint };
  call.io.lines(gridLines(columns, agents.map(rowOf), look));
}

function rowOf(agent: Agent): Cell[] {
  const signedIn = agent.signedIn === null ? "-" : agent.signedIn ? "yes" : "no";
  const version =
    agent.version === null ? (agent.installed ? "-" : "not installed") : cleanLine(agent.version);
  const isReady = agent.installed && agent.problem === null;
  const what = [agent.problem, agent.installed ? agent.howToSignIn : agent.howToInstall]
    .filter((each) => typeof each === "string")
    .map(cleanLine)
    .join(" → ");
  return [
    { text: cleanLine(agent.name), colour: isReady ? "bold" : "soft" },
    { text: version },
    { text: agent.installed ? signedIn : "" },
    { text: cleanLine(agent.defaultModel ?? ""), colour: "soft" },
    { text: what === "" ? "✓" : what, colour: isReady ? "green" : null },
  ];
}

async function add(call: Call, name: string | undefined): Promise<void> {
  const { agentsDirOf, installAdapter, locateAdapter } = await import("../doctor/own-agents.ts");
  const { adapter, vendor } = await wantedAdapter(name);
  const paths = homeOf(call);
  const location = { agentsDir: agentsDirOf(paths.home) };
  if ("path" in locateAdapter(adapter, location)) {
    return printAdded(call, vendor, { version: adapter.version, already: true, bytes: null, tookMs: null });
  }
  prepareHome(paths);
  if (!call.io.json)
    call.io.note(
      `Installing ${adapter.package} ${adapter.version} into ${join(location.agentsDir, vendor.name)}.`,
    );
  const draw = progressOf(call, vendor.title);
  const from = performance.now();
  const result = await installAdapter(adapter, location, draw.to);
  draw.end();
  if (!result.ok) {
    throw failed("install_failed", `The adapter could not be installed: ${cleanLine(result.message)}`, [
      "Nothing was changed. Check the network and npm, then try again.",
    ]);
  }
  const tookMs = Math.round(performance.now() - from);
  await printAdded(call, vendor, { version: result.version, already: false, bytes: result.bytes, tookMs });
}

async function wantedAdapter(name: string | undefined): Promise<{ vendor: Vendor; adapter: AdapterPackage }> {
  const { VENDORS } = await import("../doctor/own-agents.ts");
  const adapters = VENDORS.flatMap((vendor) =>
    "adapter" in vendor.speaks ? [{ vendor, adapter: vendor.speaks.adapter }] : [],
  );
  const wanted = adapters.find(({ vendor }) => vendor.name === name);
  if (wanted !== undefined) return wanted;
  const known = adapters.map(({ vendor }) => vendor.name);
  throw noAdapter(name, known, [...VENDORS.map((vendor) => vendor.name), "pi"]);
}

interface Added {
  readonly version: string;
  readonly already: boolean;
  readonly bytes: number | null;
  readonly tookMs: number | null;
}

/** Prints what was installed and what is still missing. */
async function printAdded(call: Call, vendor: Vendor, added: Added): Promise<void> {
  const agent = (await agentsNow(call)).find((one) => one.name === vendor.name);
  const { problem = null, version = null, uses = null } = agent ?? {};
  if (call.io.json) return call.io.answer({ agent: vendor.name, adapter: added, version, uses, problem });
  const seconds = Math.max(1, Math.round((added.tookMs ?? 0) / 1000));
  const done = added.already
    ? "is already installed"
    : `installed (${bytes(added.bytes ?? 0)}, ${seconds} s)`;
  call.io.line(`${call.io.tick} ${vendor.title}: adapter ${added.version} ${done}.`);
  const ready = `Ready: ${vendor.program} ${cleanLine(version ?? "")}. Try: kinfold run --agent ${vendor.name} "…"`;
  const next = (agent?.installed ? agent.howToSignIn : agent?.howToInstall) ?? null;
  const todo = next === null ? "" : ` → ${cleanLine(next)}`;
  call.io.line(`  ${problem === null ? ready : cleanLine(problem) + todo}`);
}

/** Returns the agents that the running daemon sees, else those that a daemon started here would see. */
async function agentsNow(call: Call): Promise<readonly Agent[]> {
  const { probeOwnAgents } = await import("../doctor/own-agents.ts");
  try {
    const connection = await tryConnection(call);
    if (connection !== null) return (await connection.client.agents({})).agents;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    call.io.note(cleanLine(error.message));
  }
  return probeOwnAgents(call);
}

/** Draws a progress bar on a terminal, and nothing in a pipe. */
function progressOf(
  call: Call,
  title: string,
): { to: (at: { doneBytes: number; totalBytes: number }) => void; end: () => void } {
  if (!process.stderr.isTTY || call.io.json) return { to: () => undefined, end: () => undefined };
  const block = inlineBlock(process.stderr);
  return {
    to({ doneBytes, totalBytes }) {
      const filled = Math.round((doneBytes / totalBytes) * BAR);
      const bar = "█".repeat(filled) + "░".repeat(BAR - filled);
      block.draw([`${title}  ${bar}  ${bytes(doneBytes)} of about ${bytes(totalBytes)}`]);
    },
    end() {
      block.draw([]);
      block.end();
    },
  };
}

function noAdapter(name: string | undefined, known: readonly string[], vendors: readonly string[]): Failure {
  const list = known.join(" or ");
  if (name === undefined)
    return refused("wrong_use", `Which agent? ${list}.`, ["Example: kinfold agents add claude"]);
  const sentence = vendors.includes(name)
    ? `${name} needs no adapter: Kinfold talks to it directly.`
    : `There is no adapter for "${cleanLine(name)}".`;
  return refused("unknown_agent", sentence, [
    `There are adapters for ${list}.`,
    "Any agent that speaks ACP can be added under agents in kinfold.yaml: kinfold config edit",
  ]);
}

const BAR = 24;
