import type { Given, ReadFile } from "./file.ts";
import { type ConfigProblem, problemIn } from "./problem.ts";
import { SETTINGS, type Setting } from "./setting.ts";
import { yaml } from "./yaml.ts";
import { nearest } from "../text/nearest.ts";

/** `KINFOLD_*` variables that are not settings. */
const RESERVED = new Set([
  "KINFOLD_HOME",
  "KINFOLD_TOKEN",
  "KINFOLD_URL",
  "KINFOLD_LEASE",
  "KINFOLD_SESSION",
  "KINFOLD_CHECKED",
]);

/** Reads the settings in `KINFOLD_*`. An empty variable counts as not set. */
export function readEnvironment(env: Readonly<Record<string, string | undefined>>): ReadFile {
  const given: Given[] = [];
  for (const setting of SETTINGS) {
    const text = env[setting.env];
    if (text === undefined || text.trim() === "") continue;
    given.push({ key: setting.key, value: fromText(setting, text), where: setting.env, line: null });
  }
  return { given, problems: misspelt(env) };
}

/** Converts text from the environment to the type of its setting. */
function fromText(setting: Setting, text: string): unknown {
  const word = text.trim();
  switch (setting.kind) {
    case "string":
      return setting.key === "callback.template" ? text : word;
    case "number":
      return /^-?[\d_]+(\.\d+)?$/.test(word) ? Number(word.replaceAll("_", "")) : text;
    case "boolean":
      return truth(word) ?? text;
    case "list":
      return word.startsWith("[") ? fromYaml(word) : word.split(",").flatMap((item) => item.trim() || []);
    case "other":
      return fromYaml(word);
  }
}

function truth(word: string): boolean | undefined {
  if (/^(1|true|yes|on)$/i.test(word)) return true;
  return /^(0|false|no|off)$/i.test(word) ? false : undefined;
}

/** Returns the text unchanged if it is not YAML; the setting's own check then reports it. */
function fromYaml(text: string): unknown {
  try {
    return yaml().parse(text);
  } catch {
    return text;
  }
}

function misspelt(env: Readonly<Record<string, string | undefined>>): ConfigProblem[] {
  const names = SETTINGS.map((setting) => setting.env);
  const known = new Set(names);
  return Object.keys(env).flatMap((name) => {
    if (!name.startsWith("KINFOLD_") || known.has(name) || RESERVED.has(name)) return [];
    const [close] = nearest(
      name.slice(8),
      names.map((known) => known.slice(8)),
    );
    if (close === undefined) return [];
    return [problemIn(name, `is not a setting; did you mean KINFOLD_${close}?`)];
  });
}
