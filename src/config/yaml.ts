import { createRequire } from "node:module";
import type * as Yaml from "yaml";

let loaded: typeof Yaml | null = null;

/** Loaded when there is YAML to read: most homes have no file, and its many modules delay every start. */
export function yaml(): typeof Yaml {
  loaded ??= createRequire(import.meta.url)("yaml") as typeof Yaml;
  return loaded;
}
