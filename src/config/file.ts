import { readFileSync } from "node:fs";
import type { Document, LineCounter } from "yaml";
import { type ConfigProblem, problemIn } from "./problem.ts";
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

export const NOTHING: ReadFile = { given: [], problems: [] };

export function onlyProblem(problem: ConfigProblem): ReadFile {
  return { given: [], problems: [problem] };
}

/** A missing file sets nothing; an invalid one is reported. */
export function readConfigFile(path: string): ReadFile {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return NOTHING;
    return onlyProblem(problemIn(path, `cannot be read: ${message}`));
  }
  return parseConfig(path, text);
}

export function parseConfig(path: string, text: string): ReadFile {
  const lines = new (yaml().LineCounter)();
  const document = yaml().parseDocument(text, { lineCounter: lines, prettyErrors: false });
  if (document.errors.length > 0) {
    const problems = document.errors.map(({ message, pos }) =>
      problemIn(path, `is not valid YAML: ${message}`, lines.linePos(pos[0]).line),
    );
    return { given: [], problems };
  }
  if (document.contents === null) return NOTHING;
  const read = { path, document, lines, given: [] as Given[], problems: [] as ConfigProblem[] };
  if (!yaml().isMap(document.contents))
    return onlyProblem(problemIn(path, "must be a list of `key: value` lines", 1));
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
    if (isScalar(map) && map.value === null) return;
    const text = "needs settings below it, each on its own line";
    reading.problems.push({ ...at(reading, parents), key: parents.join("."), text });
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
  type Node = { toJS?: (document: Document) => unknown } | null | undefined;
  const node = reading.document.getIn(path, true) as Node;
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
