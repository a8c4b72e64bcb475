import assert from "node:assert/strict";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { ConfigError, pathsIn, prepareHome, type Paths } from "./index.ts";

const root = mkdtempSync(join(tmpdir(), "kinfold-own-home-"));
after(() => rmSync(root, { recursive: true, force: true }));

let count = 0;
function home(mode: number): Paths {
  const paths = pathsIn(join(root, String(count++)));
  mkdirSync(paths.home);
  chmodSync(paths.home, mode);
  return paths;
}

function plant(file: string, mode = 0o600): void {
  writeFileSync(file, "kfp_planted\n");
  chmodSync(file, mode);
}

const modeOf = (file: string): number => statSync(file).mode & 0o777;

function refusalOf(paths: Paths): string {
  try {
    prepareHome(paths);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.message;
  }
  return "";
}

const OTHER = 12_345;
const isRoot = process.getuid?.() === 0;

describe("a home", () => {
  it("of our own that others could enter is closed to them, and its token with it", () => {
    const paths = home(0o777);
    plant(paths.token, 0o644);
    prepareHome(paths);
    assert.equal(modeOf(paths.home), 0o700);
    assert.equal(modeOf(paths.token), 0o600);
  });

  it("that others could enter is refused where they could have written its token, database or settings", () => {
    for (const name of ["token", "database", "configFile", "daemonFile"] as const) {
      const paths = home(0o777);
      plant(paths[name], 0o666);
      assert.match(refusalOf(paths), /other users could have written it \(mode 666/, name);
      assert.equal(modeOf(paths.home), 0o777, "nothing is hidden before somebody has looked");
    }
    const closed = home(0o700);
    plant(closed.configFile, 0o666);
    assert.equal(refusalOf(closed), "", "nobody could reach it");
  });

  it("is refused where its token is a link to a file that others know", () => {
    for (const put of [symlinkSync, linkSync]) {
      const paths = home(0o700);
      const known = join(root, `known-${count}`);
      plant(known);
      put(known, paths.token);
      assert.match(refusalOf(paths), /token: is a link or not a plain file/);
    }
  });

  it(
    "is refused where another user owns it, or its token or database",
    { skip: isRoot ? false : "only root gives files away" },
    () => {
      for (const name of ["home", "token", "database", "profiles"] as const) {
        const paths = home(0o777);
        if (name === "profiles") mkdirSync(paths.profiles);
        else if (name !== "home") plant(paths[name]);
        chownSync(paths[name], OTHER, OTHER);
        assert.match(refusalOf(paths), /belongs to another user \(uid 12345\)/, name);
        assert.equal(existsSync(paths.logs), false, "nothing was made there");
      }
    },
  );
});
