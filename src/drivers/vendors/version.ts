import { existsSync, mkdirSync, readFileSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type Fields, fieldsOf } from "../../text/fields.ts";

/** Caches versions by path, modification time and size, because some programs take a second to report one. */
export class Versions {
  readonly #file: string;
  #known: Record<string, Known> | null = null;

  constructor(file: string) {
    this.#file = file;
  }

  /** Null if the program does not report a version in time. */
  async of(program: string, env: NodeJS.ProcessEnv): Promise<string | null> {
    const at = seenAt(program);
    if (at === null) return null;
    const known = this.#load()[at.path];
    if (known !== undefined && known.changedAt === at.changedAt && known.bytes === at.bytes) {
      return known.version;
    }
    const version = packageVersion(at.path) ?? (await reportedVersion(program, env));
    if (version !== null) this.#keep(at, version);
    return version;
  }

  #load(): Record<string, Known> {
    this.#known ??= readKnown(this.#file);
    return this.#known;
  }

  #keep(at: Seen, version: string): void {
    const all = { ...this.#load(), [at.path]: { changedAt: at.changedAt, bytes: at.bytes, version } };
    this.#known = all;
    try {
      const folder = dirname(this.#file);
      // Not recursive: a mere probe must not create Kinfold's home.
      if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 });
      writeFileSync(this.#file, `${JSON.stringify(all, null, 1)}\n`, { mode: 0o600 });
    } catch {
      // If the file cannot be written, the version is determined again after a restart.
      this.#known = all;
    }
  }
}

interface Known {
  readonly changedAt: number;
  readonly bytes: number;
  readonly version: string;
}

interface Seen extends Omit<Known, "version"> {
  readonly path: string;
}

const REPORT_MS = 5_000;
const VERSION = /\d+\.\d+\.\d+(?:-(?:alpha|beta|rc|preview|nightly|next)[\w.]*)?/;

function seenAt(program: string): Seen | null {
  try {
    const path = realpathSync(program);
    const { mtimeMs, size } = statSync(path);
    return { path, changedAt: mtimeMs, bytes: size };
  } catch {
    return null;
  }
}

function readKnown(file: string): Record<string, Known> {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Record<string, Known>;
  } catch {
    return {};
  }
}

/** Reads the version from the program's npm package, without starting the program. */
function packageVersion(path: string): string | null {
  if (!path.includes(`${join("/", "node_modules", "/")}`)) return null;
  for (let folder = dirname(path); basename(folder) !== "node_modules"; folder = dirname(folder)) {
    if (folder === dirname(folder)) return null;
    const { name, version } = readPackage(folder);
    if (name !== undefined && typeof version === "string") return VERSION.exec(version)?.[0] ?? null;
  }
  return null;
}

/** Returns the fields of a folder's `package.json`; none if there is no such file. */
export function readPackage(folder: string): Fields {
  try {
    return fieldsOf(JSON.parse(readFileSync(join(folder, "package.json"), "utf8")));
  } catch {
    return {};
  }
}

function reportedVersion(program: string, env: NodeJS.ProcessEnv): Promise<string | null> {
  return new Promise((resolve) => {
    const options = { timeout: REPORT_MS, killSignal: "SIGKILL" as const, env };
    const { execFile } = process.getBuiltinModule("node:child_process");
    execFile(program, ["--version"], options, (error, stdout) =>
      resolve(error ? null : (VERSION.exec(stdout)?.[0] ?? null)),
    );
  });
}
