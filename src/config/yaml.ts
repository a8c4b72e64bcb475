import { createRequire } from "node:module";
import type * as Yaml from "yaml";

let loaded: typeof Yaml | null = null;

/** Loads the YAML library on demand, because it delays a start and most homes have no configuration file. */
export function yaml(): typeof Yaml {
  loaded ??= createRequire(import.meta.url)("yaml") as typeof Yaml;
  return loaded;
}
