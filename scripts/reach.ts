// Chooses the test files that a change can reach, for `npm test -- --changed`. A file reaches another if its
// text imports it or names its path. Names are found in the text alone: a path in a string counts even if
// nothing reads it, so too many tests are chosen rather than too few.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";

/** Files that every test depends on, with the reason. */
const FOR_ALL: Readonly<Record<string, string>> = {
  "package.json": "it decides what is installed and how tests start",
  "package-lock.json": "it decides what is installed",
  ".npmrc": "it decides what is installed",
};
const RUNNER = "scripts/run.mjs";
/** Files that only `npm run check` and git read. */
const FOR_NONE = new Set([
  ".gitattributes",
  ".gitignore",
  ".oxfmtrc.json",
  ".oxlintrc.json",
  "tsconfig.json",
]);
const PROSE = /\.md$|^LICENSE$|^docs\//;
const CODE = /\.(?:[cm]?[jt]s|tsx)$/;
/** Calls that list a folder. Only with one of them does the name of a whole room mean all files in it. */
const LISTS_FOLDERS = /\b(?:readdir|readTree|reportCalls|glob)\w*\(/;

/** A repository: each path, and the text of each code file. */
export interface Repository {
  readonly paths: readonly string[];
  readonly texts: ReadonlyMap<string, string>;
}

export interface Reach {
  readonly tests: readonly string[];
  /** For each changed file: the number of tests, and why where that is not plain. */
  readonly reasons: readonly string[];
}

/** Chooses among `tests` those that a change of the files `changed` can reach. */
export function reachOf(repository: Repository, changed: readonly string[], tests: readonly string[]): Reach {
  const users = usersOf(repository, changed);
  const runner = importedFrom(RUNNER, repository);
  const chosen = new Set<string>();
  const reasons: { count: number; text: string }[] = [];
  for (const path of changed) {
    const { found, why } = testsOf(path, { users, runner, tests });
    for (const test of found) chosen.add(test);
    reasons.push({ count: found.length, text: `${path}: ${countOf(found, tests)}${why}` });
  }
  const sorted = reasons.toSorted((a, b) => b.count - a.count).map(({ text }) => text);
  return { tests: tests.filter((test) => chosen.has(test)), reasons: sorted };
}

interface Known {
  readonly users: Users;
  readonly runner: ReadonlySet<string>;
  readonly tests: readonly string[];
}

function testsOf(path: string, { users, runner, tests }: Known): { found: readonly string[]; why: string } {
  const forAll = FOR_ALL[path] ?? (runner.has(path) ? "it runs the tests" : undefined);
  if (forAll !== undefined) return { found: tests, why: `, because ${forAll}` };
  if (FOR_NONE.has(path)) return { found: [], why: ", because only `npm run check` or git reads it" };
  const reached = usedBy(path, users);
  if (reached.size === 1 && !CODE.test(path)) {
    if (PROSE.test(path)) return { found: [], why: ", because no code names it" };
    return { found: tests, why: ", because no code names it, so anything may read it" };
  }
  const found = tests.filter((test) => reached.has(test));
  const throughDaemon = path !== DAEMON && reached.has(DAEMON) && found.length > BROAD;
  return { found, why: throughDaemon ? `; ${DAEMON} uses it, and every whole-daemon test starts that` : "" };
}

const DAEMON = "src/daemon.ts";
/** From this number of tests on, the reason is printed. */
const BROAD = 20;

function countOf(found: readonly string[], tests: readonly string[]): string {
  if (found.length === tests.length) return `all ${tests.length} test files`;
  return found.length === 1 ? "1 test file" : `${found.length} test files`;
}

/** For each path, the code files that import or name it. */
type Users = ReadonlyMap<string, ReadonlySet<string>>;

function usersOf({ paths, texts }: Repository, changed: readonly string[]): Users {
  // A removed file still has users: they are what its removal can break.
  const tree = treeOf([...new Set([...paths, ...changed])]);
  const users = new Map<string, Set<string>>();
  for (const [path, text] of texts) {
    for (const used of usedIn(path, text, tree)) {
      const known = users.get(used) ?? new Set();
      users.set(used, known.add(path));
    }
  }
  return users;
}

/** Returns a path and everything that uses it, over any number of steps. */
function usedBy(path: string, users: Users): ReadonlySet<string> {
  const reached = new Set([path]);
  for (const at of reached) for (const user of users.get(at) ?? []) reached.add(user);
  return reached;
}

interface Files {
  readonly paths: ReadonlySet<string>;
  /** Each folder with all files below it. */
  readonly folders: ReadonlyMap<string, readonly string[]>;
}

function treeOf(paths: readonly string[]): Files {
  const folders = new Map<string, string[]>();
  for (const path of paths) {
    for (let at = posix.dirname(path); ; at = posix.dirname(at)) {
      const known = folders.get(at);
      if (known === undefined) folders.set(at, [path]);
      else known.push(path);
      if (at === ".") break;
    }
  }
  return { paths: new Set(paths), folders };
}

function usedIn(path: string, text: string, files: Files): string[] {
  const code = codeOf(text);
  const folder = posix.dirname(path);
  // Product code lists folders of people, never of this repository; the runner lists names only.
  const isProduct = path.startsWith("src/") && !path.endsWith(".test.ts");
  const listsAll = LISTS_FOLDERS.test(code) && !isProduct && path !== RUNNER;
  return namesIn(code).flatMap((name) => {
    const asked = name.startsWith(".")
      ? [posix.join(folder, name)]
      : [posix.join(folder, name), posix.normalize(name)];
    return asked
      .map((each) => each.replace(/\/$/, ""))
      .filter((each) => listsAll || !`${folder}/`.startsWith(`${each}/`))
      .flatMap((each) => matching(each, files, listsAll));
  });
}

/** Returns the files that a name means: itself, or all files below a folder. `*` stands for a computed part. */
function matching(name: string, { paths, folders }: Files, listsAll: boolean): readonly string[] {
  if (paths.has(name)) return [name];
  if (!name.includes("*")) return listsAll || isInRoom(name) ? (folders.get(name) ?? []) : [];
  if (!isInRoom(name.slice(0, name.indexOf("*")))) return [];
  const pattern = new RegExp(`^${name.split("*").map(RegExp.escape).join("[^/]*")}(?:/|$)`);
  return [...paths].filter((path) => pattern.test(path));
}

/** Whether a folder is below a room, such as `src/store/sqlite`, and not a room or the root itself. */
function isInRoom(folder: string): boolean {
  return folder.split("/").length > 2;
}

/** Removes type imports, which vanish at run time, and lines of comments. */
function codeOf(text: string): string {
  return text
    .replaceAll(/^(?:import|export) type [^;]*? from "[^"]*";$/gm, "")
    .split("\n")
    .filter((line) => !/^\s*(?:\/\/|\/?\*)/.test(line))
    .join("\n");
}

/** A path between two quotes. Looks ahead only, because a path may be inside a computed part of another. */
const QUOTED = /(?=["'`]((?:[\w@./-]|\$\{[^}\n]*\})+)["'`])/g;
const FOLDER_ABOVE = "dirname(dirname(fileURLToPath(import.meta.url)))";

/** Returns the strings that look like a path, with a `*` for each computed part. */
function namesIn(code: string): string[] {
  const quoted = [...code.matchAll(QUOTED)]
    .map(([, text = ""]) => text.replaceAll(/\$\{[^}\n]*\}/g, "*"))
    // Without a fixed folder, a computed name could be any text.
    .filter((text) => /^[^*]*\/|^[^*]*\.[^*]*$/.test(text) && !text.startsWith("/"));
  return [...new Set([...quoted, ...(code.includes(FOLDER_ABOVE) ? [".."] : [])])];
}

/** Returns a module and everything that it imports by a static import, over any number of steps. */
function importedFrom(start: string, { texts }: Repository): ReadonlySet<string> {
  const found = new Set([start]);
  for (const path of found) {
    const imports = codeOf(texts.get(path) ?? "").matchAll(/\bfrom "(\.[^"]+)"/g);
    for (const [, name = ""] of imports) found.add(posix.join(posix.dirname(path), name));
  }
  return found;
}

/** Reads the files that git tracks or does not ignore. */
export function readRepository(root: string): Repository {
  const listed = git(root, ["ls-files", "--cached", "--others", "--exclude-standard", "-z"]);
  const paths = [...new Set(listed)].filter((path) => existsSync(join(root, path)));
  const texts = paths
    .filter((path) => CODE.test(path))
    .map((path) => [path, readFileSync(join(root, path), "utf8")] as const);
  return { paths, texts: new Map(texts) };
}

/** Returns the files that differ from the last common commit with `base`, committed or not. */
export function changedSince(root: string, base: string): string[] {
  const [start] = git(root, ["merge-base", "--", base, "HEAD"], () => unknownBase(base));
  if (start === undefined) throw unknownBase(base);
  const differing = git(root, ["diff", "--name-only", "--no-renames", "-z", start.trim()]);
  return [...differing, ...git(root, ["ls-files", "--others", "--exclude-standard", "-z"])].toSorted();
}

class WrongWord extends Error {}

function unknownBase(base: string): WrongWord {
  return new WrongWord(
    `"${base}" has no commit in common with this branch. Name one that has: npm test -- --changed --base REV`,
  );
}

function git(root: string, args: readonly string[], problem?: () => Error): string[] {
  const maxBuffer = 64 * 1024 * 1024;
  const { status, stdout, stderr } = spawnSync("git", args, { cwd: root, encoding: "utf8", maxBuffer });
  if (status !== 0) throw problem?.() ?? new Error(`git ${args.join(" ")} failed: ${stderr.trim()}`);
  return stdout.split("\0").filter(Boolean);
}

const SHOWN_MAX = 15;

/**
 * Prints what the changes since a commit (`--base REV`) or of one file (`--of FILE`) reach, for the person, and
 * the chosen files as JSON, for the runner.
 */
function main([option = "", value = "", ...tests]: readonly string[]): void {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const repository = readRepository(root);
  const changed = option === "--base" ? changedSince(root, value) : [namedFile(repository, value)];
  const { tests: chosen, reasons } = reachOf(repository, changed, tests);
  const files = changed.length === 1 ? "1 file" : `${changed.length} files`;
  const what = option === "--base" ? `${files} changed since ${value}` : value;
  console.error(`${what}: ${chosen.length} of ${tests.length} test files can be reached.`);
  for (const reason of reasons.slice(0, SHOWN_MAX)) console.error(`  ${reason}`);
  if (reasons.length > SHOWN_MAX) console.error(`  and ${reasons.length - SHOWN_MAX} files that reach fewer`);
  console.log(JSON.stringify(chosen));
}

function namedFile({ paths }: Repository, value: string): string {
  const path = posix.normalize(value);
  if (paths.includes(path)) return path;
  throw new WrongWord(
    `"${value}" is not a file of this repository. Name it from the root: --of src/daemon.ts`,
  );
}

if (import.meta.main) {
  try {
    main(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof WrongWord)) throw error;
    console.error(error.message);
    process.exitCode = 2;
  }
}
