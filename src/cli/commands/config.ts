import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import path from "node:path";
import {
  ConfigError,
  type Loaded,
  loadConfig,
  prepareHome,
  problemLine,
  SETTINGS,
} from "../../config/index.ts";
import type { Call } from "../call.ts";
import { loadHere } from "../configuration.ts";
import { EXITS, Failure } from "../failure.ts";
import { gridLines } from "../terminal/grid.ts";
import { homeOf } from "../daemon/home.ts";
import { cleanLine } from "../terminal/text.ts";

export async function run(call: Call): Promise<number | void> {
  const { configFile } = homeOf(call);
  if (call.args[0] === "path")
    return call.io.answer({ path: configFile, exists: existsSync(configFile) }, configFile);
  if (call.args[0] === "edit") return await edit(call);
  const { loaded, isBroken } = loadOrExplain(call);
  const exit = isBroken ? EXITS.refused[0] : EXITS.done[0];
  if (call.io.json) {
    call.io.answer({ settings: loaded.sources, problems: loaded.problems });
    return exit;
  }
  call.io.lines(settingLines(loaded, call));
  if (isBroken)
    call.io.note(
      "The configuration is invalid; the values above are the defaults. Fix it: kinfold config edit",
    );
  for (const problem of loaded.problems) call.io.note(problemLine(problem));
  return exit;
}

/** Loads the configuration. If it is invalid, returns the defaults and the list of problems. */
function loadOrExplain(call: Call): { loaded: Loaded; isBroken: boolean } {
  try {
    return { loaded: loadHere(call), isBroken: false };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const nowhere = path.join(homeOf(call).home, "no", "such", "folder");
    const without = loadConfig({ home: nowhere, cwd: nowhere, env: {} });
    return { loaded: { ...without, problems: error.problems }, isBroken: true };
  }
}

function settingLines(loaded: Loaded, call: Call): string[] {
  const rows = SETTINGS.map(({ key }) => {
    const source = loaded.sources[key];
    const isDefault = source?.from === "default" || source === undefined;
    return [
      { text: key, colour: isDefault ? null : ("bold" as const) },
      { text: shown(key, source?.value) },
      { text: isDefault ? "default" : `${source.from}: ${source.where ?? ""}`, colour: "soft" as const },
    ];
  });
  const columns = [{ title: "SETTING" }, { title: "VALUE", flexible: true }, { title: "FROM" }];
  return gridLines(columns, rows, { columns: call.io.columns(), paint: call.io.paint });
}

/** Formats a value. Hides the password that the store's address may contain. */
function shown(key: string, value: unknown): string {
  if (key === "store" && typeof value === "string") return value.replace(/(:\/\/[^:/@]+):[^@]*@/, "$1:…@");
  if (value === null || value === undefined) return "not set";
  return typeof value === "string" ? cleanLine(value) : JSON.stringify(value);
}

async function edit(call: Call): Promise<number> {
  const paths = homeOf(call);
  const editor = call.env["VISUAL"] || call.env["EDITOR"] || "vi";
  prepareHome(paths);
  if (!existsSync(paths.configFile)) writeFileSync(paths.configFile, template(), { mode: 0o600 });
  const child = spawn(`${editor} "$KINFOLD_EDITED"`, {
    shell: true,
    stdio: "inherit",
    env: { ...call.env, KINFOLD_EDITED: paths.configFile },
  });
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) {
    const how = code === null ? "a signal" : `code ${code}`;
    throw new Failure("failed", `The editor (${editor}) ended with ${how}.`, {
      next: [`Use another editor: EDITOR=nano kinfold config edit`, `The file: ${paths.configFile}`],
    });
  }
  loadHere(call);
  call.io.line(
    "The configuration is valid. It takes effect when the daemon restarts: kinfold down && kinfold up",
  );
  return 0;
}

/** Returns the text of a configuration file in which every setting is commented out. */
function template(): string {
  const lines = [
    "# Kinfold's settings. Uncomment what you change; kinfold config shows the values in effect.",
  ];
  let section = "";
  for (const { key, description, fallback } of SETTINGS) {
    const [first = "", name] = key.split(".");
    if (name !== undefined && first !== section) lines.push(`# ${first}:`);
    section = first;
    const indent = name === undefined ? "" : "  ";
    lines.push(
      `# ${indent}${name ?? first}: ${fallback === null || fallback === undefined ? "…" : JSON.stringify(fallback)}${description ? `   # ${description}` : ""}`,
    );
  }
  return `${lines.join("\n")}\n`;
}
