import { join } from "node:path";
import { prepareHome } from "../../config/index.ts";
import type { Agent } from "../../contract/index.ts";
import type { Call } from "../call.ts";
import { openConnection } from "../connection.ts";
import { Failure } from "../failure.ts";
import { gridLines } from "../grid.ts";
import { homeOf } from "../home.ts";
import { inlineBlock } from "../screen.ts";
import { bytes, oneLine } from "../text.ts";

export async function run(call: Call): Promise<void> {
  const [action, name] = call.args;
  if (action === "add") return await add(call, name);
  const { client } = await openConnection(call);
  const { agents } = await client.models({});
  if (call.io.json) {
    call.io.answer({ agents });
    return;
  }
  const titles = ["AGENT", "VERSION", "SIGNED IN", "MODEL", "WHAT TO DO"];
  const columns = titles.map((title) => ({
    title,
    ...(title === "MODEL" ? { dropped: 1 } : {}),
    ...(title === "WHAT TO DO" ? { flexible: true } : {}),
  }));
  const look = { columns: call.io.columns(), paint: call.io.paint };
  for (const line of gridLines(columns, agents.map(rowOf), look)) call.io.line(line);
}

function rowOf(agent: Agent): { text: string; colour?: "bold" | "soft" | "green" | null }[] {
  const signedIn = agent.signedIn === null ? "-" : agent.signedIn ? "yes" : "no";
  const version = agent.version === null ? (agent.installed ? "-" : "not installed") : oneLine(agent.version);
  const isReady = agent.installed && agent.problem === null;
  const what = [agent.problem, agent.howToInstall]
    .filter((each) => each !== null)
    .map(oneLine)
    .join(" → ");
  return [
    { text: oneLine(agent.name), colour: isReady ? "bold" : "soft" },
    { text: version },
    { text: agent.installed ? signedIn : "" },
    { text: oneLine(agent.defaultModel ?? ""), colour: "soft" },
    { text: what === "" ? "✓" : what, colour: isReady ? "green" : null },
  ];
}

/** Installs the adapter through which an agent is driven; the agent's own program stays the person's. */
async function add(call: Call, name: string | undefined): Promise<void> {
  const { agentsDirOf, installAdapter, VENDORS } = await import("../../drivers/vendors/index.ts");
  const adapters = VENDORS.flatMap((vendor) =>
    "adapter" in vendor.speaks ? [{ vendor, adapter: vendor.speaks.adapter }] : [],
  );
  const wanted = adapters.find(({ vendor }) => vendor.name === name);
  if (wanted === undefined)
    throw noAdapter(
      name,
      adapters.map(({ vendor }) => vendor.name),
      VENDORS.map((vendor) => vendor.name),
    );
  const { adapter, vendor } = wanted;
  const paths = homeOf(call);
  prepareHome(paths);
  if (!call.io.json)
    call.io.note(
      `Installing ${adapter.package} ${adapter.version} into ${join(agentsDirOf(paths.home), vendor.name)}.`,
    );
  const draw = progressOf(call, vendor.title);
  const result = await installAdapter(adapter, { agentsDir: agentsDirOf(paths.home) }, draw.to);
  draw.end();
  if (!result.ok) {
    throw new Failure("failed", `The adapter could not be installed: ${oneLine(result.message)}`, {
      code: "install_failed",
      next: ["Nothing was changed. Check the network and npm, then try again."],
    });
  }
  if (call.io.json) call.io.answer({ agent: vendor.name, version: result.version, path: result.path });
  else
    call.io.line(
      `${call.io.paint("green", "✓")} ${vendor.title}: adapter ${result.version} installed. It is used from the daemon's next start: kinfold down && kinfold up`,
    );
}

/** A bar on a terminal; nothing in a pipe. */
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
    return new Failure("refused", `Which one? ${list}.`, {
      code: "wrong_use",
      next: ["Example: kinfold agents add claude"],
    });
  const sentence = vendors.includes(name)
    ? `${name} needs no adapter: Kinfold speaks to it directly.`
    : `There is no adapter for "${oneLine(name)}".`;
  return new Failure("refused", sentence, {
    code: "unknown_agent",
    next: [
      `Adapters: ${list}`,
      "Any agent that speaks ACP can be added under agents in kinfold.yaml: kinfold config edit",
    ],
  });
}

const BAR = 24;
