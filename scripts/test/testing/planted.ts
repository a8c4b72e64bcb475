import { type ChildProcessByStdio, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";

/** Starts every planted test file. `isFirst()` is true in the first run of a file and false in the second. */
const HEAD = `
import { after, describe, it } from "node:test";
import { spawn } from "node:child_process";
import { appendFileSync, existsSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
const seen = basename(process.argv[1]) + ".seen";
const first = !existsSync(seen);
writeFileSync(seen, "");
appendFileSync("runs", basename(process.argv[1]) + "\\n");
const isFirst = () => first;
const leave = () => spawn("sleep", ["300"], { detached: true, stdio: "ignore" }).unref();
`;

export interface PlantedRun {
  readonly root: string;
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  readonly ended: Promise<Ended>;
}

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
  /** The planted test files in the order in which they ran, and what their tests appended. */
  readonly runs: readonly string[];
}

/** Differences from a small default setup. */
export interface Setup {
  readonly options?: readonly string[];
  readonly concurrency?: number;
  readonly limits?: Record<string, number>;
  /** Whether the runner measures how slow the machine is; otherwise its time limits do not grow. */
  readonly measures?: boolean;
}

/**
 * Starts the real runner on planted files in a temporary folder. `call` is the JavaScript that runs them: it
 * sees the modules of the runner as `suite` and `loaded`, and its value is the exit code.
 */
export function startPlanted(
  t: TestContext,
  files: Record<string, string>,
  { call, measures = false, ...setup }: Setup & { readonly call: string },
): PlantedRun {
  const root = mkdtempSync(join(tmpdir(), "kinfold-suite-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  for (const [name, body] of Object.entries(files)) {
    writeFileSync(join(root, name), name.endsWith(".test.ts") ? HEAD + body : body);
  }
  const tests = Object.keys(files).filter((name) => name.endsWith(".test.ts"));
  const base = { root, files: tests, options: [], concurrency: 2, testMs: 60_000, limits: { graceMs: 100 } };
  const script = `
    import * as suite from ${JSON.stringify(new URL("../run-suite.mjs", import.meta.url).href)};
    import * as loaded from ${JSON.stringify(new URL("../run-loaded.mjs", import.meta.url).href)};
    const node = process.execPath;
    const setup = { ...JSON.parse(process.argv[1])${measures ? "" : ", slowness: () => 1"} };
    process.exitCode = await ${call};
  `;
  // Inside a test process, Node would skip all files of an inner run. npm's name would tie it to its parent.
  const { NODE_TEST_CONTEXT: _, npm_lifecycle_event: __, ...env } = process.env;
  const args = ["--input-type=module", "-e", script, JSON.stringify({ ...base, ...setup })];
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  return { root, child, ended: readEnd(root, child) };
}

async function readEnd(root: string, child: PlantedRun["child"]): Promise<Ended> {
  const closed = new Promise<number | null>((resolve) => child.on("close", resolve));
  const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { code, out, err, runs: readLines(join(root, "runs")) };
}

function readLines(path: string): string[] {
  return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
}
