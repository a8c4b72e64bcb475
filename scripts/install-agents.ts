// Installs the pinned agents into the cache, unless they are there already. Install scripts do not run and
// are not needed: each native program comes in a package for its platform.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { installAdapter, locateAdapter, VENDORS } from "../src/drivers/vendors/index.ts";
import { adaptersDir, cacheDir, isCached, PROGRAM_NAMES, PROGRAMS } from "../test/agents/support/cache.ts";
import type { ProgramName } from "../test/agents/support/cache.ts";

const asked = process.argv.slice(2).filter((word) => !word.startsWith("-"));
const isWanted = (name: string): boolean => asked.length === 0 || asked.includes(name);

for (const name of PROGRAM_NAMES) if (isWanted(name) && !isCached(name)) installProgram(name);
for (const vendor of VENDORS) {
  if (!("adapter" in vendor.speaks) || !isWanted(vendor.name)) continue;
  const { adapter } = vendor.speaks;
  const place = { agentsDir: adaptersDir() };
  if (!("problem" in locateAdapter(adapter, place))) continue;
  console.log(`installing the adapter ${adapter.package}@${adapter.version}`);
  mkdirSync(place.agentsDir, { recursive: true });
  const result = await installAdapter(adapter, place);
  if (!result.ok) throw new Error(result.message);
}

function installProgram(name: ProgramName): void {
  const folder = path.join(cacheDir(), name);
  const { package: packageName, version } = PROGRAMS[name];
  console.log(`installing ${packageName}@${version}`);
  mkdirSync(folder, { recursive: true });
  const manifest = path.join(folder, "package.json");
  if (!existsSync(manifest)) writeFileSync(manifest, '{ "private": true }\n');
  const words = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const { status } = spawnSync("npm", [...words, `${packageName}@${version}`], {
    cwd: folder,
    stdio: "inherit",
  });
  if (status !== 0 || !isCached(name)) throw new Error(`${packageName}@${version} could not be installed`);
}
