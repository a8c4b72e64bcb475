import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { type AdapterPackage, installAdapter, type InstallProgress, locateAdapter } from "./adapter.ts";

const ADAPTER: AdapterPackage = {
  name: "it",
  package: "@project/it-acp",
  version: "1.2.3",
  entry: "dist/index.js",
  installedBytes: 1_000,
};
const FOLDER = "node_modules/@project/it-acp";
const PUTS_IT = `mkdir -p ${FOLDER}/dist && echo '{"version":"1.2.3"}' > ${FOLDER}/package.json && echo 1 > ${FOLDER}/dist/index.js`;

describe("an adapter", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "kinfold-adapter-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const agentsDir = (): string => join(folder, "agents");
  /** A fake npm that runs this shell line. */
  const npm = async (line: string): Promise<string> => {
    const file = join(folder, "npm");
    await writeFile(file, `#!/bin/sh\n${line}\n`, { mode: 0o755 });
    return file;
  };

  it("is installed with its dependencies, and the progress ends at 100 percent", async () => {
    const told: InstallProgress[] = [];
    const place = { agentsDir: agentsDir(), npm: await npm(PUTS_IT) };
    const result = await installAdapter(ADAPTER, place, (progress) => told.push(progress));
    assert.ok(result.ok);
    assert.deepEqual(locateAdapter(ADAPTER, place), { path: result.path });
    assert.ok(result.bytes > 0);
    assert.deepEqual(told.at(-1), { doneBytes: 1_000, totalBytes: 1_000 });
    assert.deepEqual(await readdir(agentsDir()), ["it"]);
  });

  it("that npm cannot install leaves the installed one in place, and the reason has none of npm's codes", async () => {
    await installAdapter(ADAPTER, { agentsDir: agentsDir(), npm: await npm(PUTS_IT) });
    const says =
      "printf 'npm error code E404\\nnpm error 404 Not Found - it\\nnpm error A complete log is here\\n' >&2";
    const place = { agentsDir: agentsDir(), npm: await npm(`${says}; exit 1`) };
    assert.deepEqual(await installAdapter(ADAPTER, place), {
      ok: false,
      message: "npm could not install @project/it-acp@1.2.3: 404 Not Found - it",
    });
    assert.ok("path" in locateAdapter(ADAPTER, place));
    assert.deepEqual(await readdir(agentsDir()), ["it"]);
  });

  it("in another version than the pinned one is not used", async () => {
    const place = { agentsDir: agentsDir(), npm: await npm(PUTS_IT.replace("1.2.3", "1.0.0")) };
    const result = await installAdapter(ADAPTER, place);
    assert.match(result.ok ? "" : result.message, /version 1\.0\.0, but version 1\.2\.3 is needed/);
  });

  it("removes the folder of an interrupted installation, but not of a running one", async () => {
    // No process has this pid, so this folder is from an interrupted installation.
    await mkdir(join(agentsDir(), ".it-999999999"), { recursive: true });
    await mkdir(join(agentsDir(), `.it-${process.ppid}`));
    await installAdapter(ADAPTER, { agentsDir: agentsDir(), npm: await npm(PUTS_IT) });
    assert.deepEqual((await readdir(agentsDir())).sort(), [`.it-${process.ppid}`, "it"]);
  });
});
