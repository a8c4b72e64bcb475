import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { loadProfiles, trustProject } from "./profile.ts";
import { listProjectFiles, readProjectFile } from "./project-ceiling.ts";

function folder(t: TestContext): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "kinfold-project-")));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

function projectIn(t: TestContext): { project: string; home: string; agents: string } {
  const top = folder(t);
  const project = join(top, "project");
  const agents = join(project, ".kinfold", "agents");
  mkdirSync(agents, { recursive: true });
  mkdirSync(join(top, "home"));
  return { project, home: join(top, "home"), agents };
}

/** Returns the text that was read, or another text if the read still waits for a writer after 5 s. */
async function withoutWaiting(fifo: string, read: Promise<string>): Promise<string> {
  const late = Promise.withResolvers<string>();
  const timer = setTimeout(() => {
    closeSync(openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK));
    late.resolve("waited for a writer");
  }, 5_000);
  try {
    return await Promise.race([read, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

const profile = (name: string): string => `---\nname: ${name}\ndescription: d\n---\nDo it.\n`;

test("a plain file of a project is read", async (t) => {
  const project = folder(t);
  writeFileSync(join(project, "kinfold.yaml"), "agent: sim\n");
  assert.deepEqual(await readProjectFile(project, "kinfold.yaml"), { kind: "text", text: "agent: sim\n" });
  assert.deepEqual(await readProjectFile(project, "other.yaml"), { kind: "missing" });
});

test("a FIFO, a folder and a link, also to a device, are not read", async (t) => {
  const project = folder(t);
  execFileSync("mkfifo", [join(project, "fifo")]);
  symlinkSync("/dev/zero", join(project, "zero"));
  symlinkSync("/etc/passwd", join(project, "passwd"));
  mkdirSync(join(project, "folder"));
  const why = async (name: string): Promise<string> => {
    const read = await readProjectFile(project, name);
    return read.kind === "refused" ? read.why : read.kind;
  };
  assert.equal(await withoutWaiting(join(project, "fifo"), why("fifo")), "is not a plain file");
  assert.equal(await why("zero"), "is a link");
  assert.equal(await why("passwd"), "is a link");
  assert.equal(await why("folder"), "is not a plain file");
});

test("a file behind a folder that links out of the project is not read", async (t) => {
  const [project, elsewhere] = [folder(t), folder(t)];
  writeFileSync(join(elsewhere, "a.md"), "secret");
  symlinkSync(elsewhere, join(project, "agents"));
  assert.deepEqual(await readProjectFile(project, "agents/a.md"), {
    kind: "refused",
    why: "is outside the project",
  });
  assert.deepEqual(await listProjectFiles(project, "agents", ".md"), []);
});

test("64 KB are read, one byte more is not", async (t) => {
  const project = folder(t);
  writeFileSync(join(project, "full"), "x".repeat(64 * 1024));
  writeFileSync(join(project, "over"), "x".repeat(64 * 1024 + 1));
  assert.equal((await readProjectFile(project, "full")).kind, "text");
  assert.deepEqual(await readProjectFile(project, "over"), { kind: "refused", why: "is larger than 64 KB" });
});

test("at most 100 files of a folder are listed", async (t) => {
  const { project, agents } = projectIn(t);
  for (let n = 0; n < 150; n++) writeFileSync(join(agents, `${n}.md`), profile(`p${n}`));
  assert.equal((await listProjectFiles(project, ".kinfold/agents", ".md")).length, 100);
});

test("profiles of an untrusted project are listed by name and not opened", async (t) => {
  const { project, home, agents } = projectIn(t);
  execFileSync("mkfifo", [join(agents, "fifo.md")]);
  symlinkSync("/dev/zero", join(agents, "zero.md"));
  writeFileSync(join(agents, "broken.md"), "no front matter");
  const { untrusted, profiles } = await loadProfiles({ home, project });
  assert.deepEqual(
    untrusted.map(({ name }) => name),
    ["broken", "fifo", "zero"],
  );
  assert.ok(profiles.every(({ from }) => from === "built in"));
});

test("a trusted profile that has become a FIFO or another text is not used", async (t) => {
  const { project, home, agents } = projectIn(t);
  for (const name of ["kept", "changed", "fifo"]) writeFileSync(join(agents, `${name}.md`), profile(name));
  await trustProject(home, project);
  writeFileSync(join(agents, "changed.md"), profile("other"));
  rmSync(join(agents, "fifo.md"));
  execFileSync("mkfifo", [join(agents, "fifo.md")]);
  const { untrusted, profiles, problems } = await loadProfiles({ home, project });
  assert.deepEqual(
    untrusted.map(({ name }) => name),
    ["changed"],
  );
  assert.deepEqual(
    problems.map(({ names }) => names),
    [["fifo"]],
  );
  assert.deepEqual(
    profiles.filter(({ from }) => from.startsWith(agents)).map(({ name }) => name),
    ["kept"],
  );
});
