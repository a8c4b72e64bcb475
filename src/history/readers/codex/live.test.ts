import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { noFacts } from "../../facts.ts";
import { systemProbe } from "../../../system/process-probe.ts";
import { codex } from "./index.ts";
import { session } from "./testing/layouts.ts";
import { idAt, meta, NO_PROCESSES, spawned, writeRollout } from "./testing/made.ts";

const skip = process.platform === "linux" ? false : "only Linux says who holds a file";

describe("the processes of Codex", { skip }, () => {
  let folder: string;
  const holders: ChildProcess[] = [];
  before(async () => {
    folder = await fs.mkdtemp(join(tmpdir(), "kinfold-codex-"));
  });
  after(async () => {
    for (const holder of holders) {
      const gone = holder.exitCode !== null || holder.signalCode !== null ? null : once(holder, "exit");
      holder.kill("SIGKILL");
      await gone;
    }
    await fs.rm(folder, { recursive: true, force: true });
  });
  /** Starts a process that opens a file and reports when it is open. */
  const hold = async (path: string, flags: string): Promise<ChildProcess> => {
    const code = `require("fs").openSync(process.argv[1], ${JSON.stringify(flags)}); console.log("open"); setInterval(() => {}, 1e6)`;
    const holder = spawn(process.execPath, ["-e", code, path], { stdio: ["ignore", "pipe", "inherit"] });
    holders.push(holder);
    await once(holder.stdout as NonNullable<typeof holder.stdout>, "data");
    return holder;
  };

  it("are known by the file they hold for writing, also a sub-agent's, and by nothing else", async () => {
    const real = await fs.mkdtemp(join(folder, "real-"));
    const root = join(folder, "link");
    await fs.symlink(real, root);
    const [top, child, other] = [idAt(0, "top"), idAt(1, "child"), idAt(2, "other")];
    await writeRollout(real, top, session(top, 0));
    const held = await writeRollout(real, child, [meta(1, child, spawned(top, top))]);
    const looked = await writeRollout(real, other, session(other, 2));
    assert.deepEqual(await codex.live(root, systemProbe), []);
    const writer = await hold(held, "a");
    await hold(looked, "r");
    const live = await codex.live(root, systemProbe);
    assert.deepEqual(
      live.map(({ id, pid, alive, doing }) => ({ id, pid, alive, doing })),
      [{ id: top, pid: writer.pid, alive: true, doing: null }],
    );
    const startedAt = live[0]?.startedAt ?? 0;
    assert.ok(startedAt > Date.now() - 3_600_000 && startedAt <= Date.now());
    const gone = once(writer, "exit");
    assert.equal(codex.listsLive?.(noFacts(top)), await systemProbe.shows?.("codex"));
    writer.kill("SIGKILL");
    await gone;
    assert.deepEqual(await codex.live(root, systemProbe), []);
  });

  it("that cannot be inspected leave it unknown whether a session is worked on", async () => {
    for (const isSeen of [true, false]) {
      assert.deepEqual(await codex.live(folder, { ...NO_PROCESSES, shows: async () => isSeen }), []);
      assert.equal(codex.listsLive?.(noFacts("x")), isSeen);
    }
    await codex.live(folder, NO_PROCESSES);
    assert.equal(codex.listsLive?.(noFacts("x")), false);
  });
});
