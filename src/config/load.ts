import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { Config } from "../contract/config.ts";
import { readEnvironment } from "./environment.ts";
import { readConfigFile, type Given } from "./file.ts";
import { looseness, projectFolders, readProjectSync } from "./project-ceiling.ts";
import { ConfigError, type ConfigProblem } from "./problem.ts";
import { SETTINGS, settingOf, type Setting } from "./setting.ts";

export interface LoadRequest {
  readonly home: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export type From = "default" | "home file" | "project file" | "environment";

export interface Source {
  readonly value: unknown;
  readonly from: From;
  /** Where the value was set: `file:line` or the variable's name; null for a default. */
  readonly where: string | null;
}

export interface Loaded {
  readonly config: Config;
  readonly sources: Readonly<Record<string, Source>>;
  /** Settings that were not applied, and why; never fatal. */
  readonly problems: readonly ConfigProblem[];
}

/**
 * Loads the configuration for a folder. The environment overrides the home's file. The project's files can
 * only make it stricter. Throws one `ConfigError` with every problem.
 */
export function loadConfig(request: LoadRequest): Loaded {
  const state: State = { applied: new Map(), errors: [], problems: [] };
  const homeFile = join(request.home, "kinfold.yaml");

  const home = readConfigFile(homeFile);
  state.errors.push(...home.problems);
  for (const given of home.given) apply(state, "home file", given);

  const environment = readEnvironment(request.env);
  state.problems.push(...environment.problems);
  for (const given of environment.given) apply(state, "environment", given);

  for (const folder of projectFolders(request.cwd)) {
    if (sameFile(homeFile, join(folder, "kinfold.yaml"))) continue;
    const project = readProjectSync(folder);
    state.errors.push(...project.problems);
    for (const given of project.given) if (mayProject(state, given)) apply(state, "project file", given);
  }

  const config = assemble(state);
  return { config, sources: sourcesOf(state, config), problems: state.problems };
}

interface State {
  readonly applied: Map<string, Given & { readonly from: From }>;
  readonly errors: ConfigProblem[];
  readonly problems: ConfigProblem[];
}

function apply(state: State, from: From, given: Given): void {
  const text = settingOf(given.key)?.check(given.value) ?? null;
  if (text === null) state.applied.set(given.key, { ...given, from });
  else state.errors.push({ where: given.where, line: given.line, key: given.key, text });
}

function mayProject(state: State, given: Given): boolean {
  const setting = settingOf(given.key);
  if (setting === undefined || setting.check(given.value) !== null) return true;
  const reason = projectRefusal(state, setting, given.value);
  if (reason !== null)
    state.problems.push({ where: given.where, line: given.line, key: given.key, text: reason });
  return reason === null;
}

function projectRefusal(state: State, setting: Setting, value: unknown): string | null {
  if (setting.project === "none") {
    return "was not applied: a project's file may not set it; set it in your home's kinfold.yaml";
  }
  const before = state.applied.get(setting.key)?.value ?? setting.fallback;
  if (looseness(value) <= looseness(before)) return null;
  return `was not applied: a project's file may only make it stricter, and ${String(value)} is looser than ${String(before)}`;
}

function assemble(state: State): Config {
  if (state.errors.length > 0) throw new ConfigError(state.errors);
  const tree: Record<string, unknown> = {};
  for (const [key, { value }] of state.applied) {
    const [section, name] = key.split(".") as [string, string | undefined];
    if (name === undefined) tree[section] = value;
    else tree[section] = { ...(tree[section] as object | undefined), [name]: value };
  }
  const parsed = Config.safeParse(tree);
  if (parsed.success) return parsed.data;
  throw new ConfigError(
    parsed.error.issues.map((issue) => together(state, issue.path.join("."), issue.message)),
  );
}

/** Describes a problem with a combination of settings, such as a certificate without its key. */
function together(state: State, key: string, message: string): ConfigProblem {
  const section = key.split(".")[0] ?? key;
  const near =
    state.applied.get(key) ??
    [...state.applied.values()].find((given) => given.key.startsWith(`${section}.`));
  return {
    where: near?.where ?? "the configuration",
    line: near?.line ?? null,
    key,
    text: `is not valid: ${message}`,
  };
}

function sourcesOf(state: State, config: Config): Record<string, Source> {
  return Object.fromEntries(
    SETTINGS.map(({ key }): [string, Source] => {
      const given = state.applied.get(key);
      const value = valueAt(config, key);
      if (given === undefined) return [key, { value, from: "default", where: null }];
      const where = given.line === null ? given.where : `${given.where}:${given.line}`;
      return [key, { value, from: given.from, where }];
    }),
  );
}

function valueAt(config: Config, key: string): unknown {
  let value: unknown = config;
  for (const part of key.split(".")) value = (value as Record<string, unknown> | null)?.[part] ?? null;
  return value;
}

/** A daemon started in its home must not read the home's file again as a project's file. */
function sameFile(a: string, b: string): boolean {
  if (a === b) return true;
  return existsSync(a) && existsSync(b) && realpathSync(a) === realpathSync(b);
}
