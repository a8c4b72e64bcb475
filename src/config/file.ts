import { readFileSync } from "node:fs";
import type { Document, LineCounter } from "yaml";
import type { ConfigProblem } from "./problem.ts";
import { SETTINGS, isSection, settingOf } from "./setting.ts";
import { yaml } from "./yaml.ts";
import { nearest } from "../text/nearest.ts";

export interface Given {
  readonly key: string;
  readonly value: unknown;
  readonly where: string;
  readonly line: number | null;
}

export interface ReadFile {
  readonly given: readonly Given[];
  readonly problems: readonly ConfigProblem[];
}

const nothing: ReadFile = { given: [], problems: [] };

/** A missing file sets nothing; an invalid one is reported. */
export function readConfigFile(path: string): ReadFile {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return nothing;
    return {
      given: [],
      problems: [{ where: path, line: null, key: null, text: `cannot be read: ${message}` }],
    };
  }
  return parseConfig(path, text);
}

export function parseConfig(path: string, text: string): ReadFile {
  const lines = new (yaml().LineCounter)();
  const document = yaml().parseDocument(text, { lineCounter: lines, prettyErrors: false });
  if (document.errors.length > 0) {
    return { given: [], problems: document.errors.map((error) => syntaxProblem(path, lines, error)) };
  }
  if (document.contents === null) return nothing;
  const read = { path, document, lines, given: [] as Given[], problems: [] as ConfigProblem[] };
  if (!yaml().isMap(document.contents)) {
    return {
      given: [],
      problems: [{ where: path, line: 1, key: null, text: "must be a list of `key: value` lines" }],
    };
  }
  walk(read, []);
  return read;
}

interface Reading {
  readonly path: string;
  readonly document: Document;
  readonly lines: LineCounter;
  readonly given: Given[];
  readonly problems: ConfigProblem[];
}

function walk(reading: Reading, parents: readonly string[]): void {
  const { isMap, isScalar } = yaml();
  const map = reading.document.getIn(parents, true);
  if (!isMap(map)) {
    const key = parents.join(".");
    if (isScalar(map) && map.value === null) return;
    reading.problems.push({
      ...at(reading, parents),
      key,
      text: "needs settings below it, each on its own line",
    });
    return;
  }
  for (const { key: node } of map.items) {
    const name = isScalar(node) ? String(node.value) : String(node);
    const path = [...parents, name];
    const key = path.join(".");
    const line = isScalar(node) && node.range ? reading.lines.linePos(node.range[0]).line : null;
    if (isSection(key) && parents.length === 0) walk(reading, path);
    else if (settingOf(key) !== undefined) reading.given.push(take(reading, path, line));
    else reading.problems.push({ where: reading.path, line, key, text: unknownSetting(key) });
  }
}

function take(reading: Reading, path: readonly string[], line: number | null): Given {
  const node = reading.document.getIn(path, true) as
    | { toJS?: (document: Document) => unknown }
    | null
    | undefined;
  return { key: path.join("."), value: node?.toJS?.(reading.document) ?? null, where: reading.path, line };
}

function at(reading: Reading, path: readonly string[]): { where: string; line: number | null } {
  const node = reading.document.getIn(path, true) as { range?: readonly number[] | null } | undefined;
  const offset = node?.range?.[0];
  return { where: reading.path, line: offset === undefined ? null : reading.lines.linePos(offset).line };
}

function unknownSetting(key: string): string {
  const keys = SETTINGS.map((setting) => setting.key);
  const last = key.slice(key.lastIndexOf(".") + 1);
  const sections = keys.filter((k) => k.includes(".")).map((k) => k.slice(0, k.indexOf(".")));
  const [near] = nearest(key, [...keys, ...sections], 1);
  const close = near ?? keys.find((candidate) => candidate.endsWith(`.${last}`));
  return close === undefined
    ? "is not a setting; `kinfold config` lists them all"
    : `is not a setting; did you mean ${close}?`;
}

function syntaxProblem(
  path: string,
  lines: LineCounter,
  error: { message: string; pos: readonly number[] },
): ConfigProblem {
  const line = lines.linePos(error.pos[0] ?? 0).line;
  return { where: path, line, key: null, text: `is not valid YAML: ${error.message}` };
}
