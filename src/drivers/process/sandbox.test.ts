import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { chooseSandbox } from "./sandbox.ts";

test("a sandbox whose probe failed to run or timed out is probed again at the next start", async (t) => {
  if (process.platform !== "linux") return t.skip("sandboxes exist on Linux only");
  const folder = mkdtempSync(join(tmpdir(), "kinfold-sandbox-"));
  const { PATH, TMPDIR } = process.env;
  t.after(() => {
    process.env["PATH"] = PATH;
    if (TMPDIR === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = TMPDIR;
    rmSync(folder, { recursive: true, force: true });
  });
  const log = join(folder, "log");
  writeFileSync(log, "");
  const bwrap = join(folder, "bwrap");
  writeFileSync(
    bwrap,
    `#!/bin/sh\necho tried >> ${log}\n[ $(wc -l < ${log}) = 1 ] && exec sleep 60\necho no >&2\nexit 3\n`,
  );
  chmodSync(bwrap, 0o700);
  process.env["PATH"] = `${folder}:${PATH}`;
  process.env["TMPDIR"] = join(folder, "full");
  await assert.rejects(chooseSandbox("bubblewrap"), /ENOENT/);
  mkdirSync(join(folder, "full"));
  const problem = async (): Promise<string> => {
    const sandbox = await chooseSandbox("bubblewrap");
    return sandbox.kind === "none" ? sandbox.problem : sandbox.kind;
  };
  assert.match(await problem(), /bwrap does not work here: it did not answer within 5 s/);
  assert.match(await problem(), /bwrap does not work here: no$/);
  await problem();
  const tries = readFileSync(log, "utf8").trim().split("\n");
  assert.equal(tries.length, 2, "an answer holds as long as the daemon lives");
});
