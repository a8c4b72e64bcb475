import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { OpenRequest } from "../port.ts";
import { locateAdapter } from "./adapter.ts";
import { claude } from "./claude/claude.ts";
import { codex } from "./codex/codex.ts";
import { findVendor } from "./driver.ts";
import { gemini } from "./gemini/gemini.ts";
import { goose } from "./goose/goose.ts";
import { VENDORS } from "./index.ts";
import { opencode } from "./opencode/opencode.ts";
import type { Look, Vendor } from "./vendor.ts";
import { Versions } from "./version.ts";

let folder: string;
const path = process.env["PATH"];

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "kinfold-vendors-"));
});
after(async () => {
  process.env["PATH"] = path;
  await rm(folder, { recursive: true, force: true });
});

async function put(file: string, text: string, mode = 0o600): Promise<string> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
  await chmod(file, mode);
  return file;
}

const request = (permission: OpenRequest["permission"] = "workspace"): OpenRequest => ({
  sessionId: "s",
  leaseId: "l",
  cwd: "/work",
  model: null,
  permission,
  tools: null,
  notTools: [],
  servers: null,
  mcp: { url: "http://127.0.0.1:1/mcp", token: "kfs_secret" },
  load: null,
  startMs: 1,
  onUpdate: () => undefined,
  onRequest: async () => ({ kind: "deny" }),
  admitProcess: async (start) => start() !== null,
});
const at = (): { closed: string[]; folder: string } => ({ closed: ["/k"], folder: join(folder, "own") });

it("Codex is told to wait for Kinfold's tools before it asks its model", () => {
  const { env = {} } = codex.launch?.(request(), at()) ?? {};
  const { mcp_servers: servers } = JSON.parse(env["CODEX_CONFIG"] ?? "{}") as {
    mcp_servers: Record<string, { url: string; required?: boolean }>;
  };
  const [ours] = Object.values(servers);
  assert.deepEqual([ours?.url, ours?.required], ["http://127.0.0.1:1/mcp", true]);
});

describe("a token", () => {
  it("is in no argument, no configuration, and no header that becomes an argument", () => {
    for (const vendor of VENDORS) {
      const { args = [], env = {} } = vendor.launch?.(request(), at()) ?? {};
      const { KINFOLD_TOKEN, ...others } = env;
      assert.ok(KINFOLD_TOKEN === undefined || KINFOLD_TOKEN === "kfs_secret");
      assert.equal(JSON.stringify([args, others, vendor.meta?.(request(), at())]).includes("kfs_"), false);
    }
    assert.equal(JSON.stringify(claude.servers?.(request())).includes("kfs_"), false);
    assert.match(JSON.stringify(claude.servers?.(request())), /Bearer \$\{KINFOLD_TOKEN\}/);
  });
});

describe("a mode", () => {
  it("is translated to the vendor's mode or setting, for each of our modes", () => {
    for (const vendor of VENDORS) {
      const words = (["read-only", "ask", "workspace", "full"] as const).map((mode) =>
        JSON.stringify([
          vendor.modes?.[mode],
          vendor.launch?.(request(mode), at()),
          vendor.meta?.(request(mode), at()),
        ]),
      );
      assert.notEqual(words[0], words[3], `${vendor.name}: to read only is not to do everything`);
    }
  });

  it("is reported as enforced by the operating system only if it is", () => {
    for (const { name, enforces } of VENDORS) {
      if (name !== "codex") assert.equal(Object.values(enforces).includes("os"), false, name);
    }
  });
});

describe("what is found of a vendor", () => {
  const options = (): { home: string } => ({ home: join(folder, "home") });

  it("without its program says how to install it and the adapter", () => {
    process.env["PATH"] = join(folder, "empty");
    const found = findVendor(codex, options());
    assert.match(found.problem ?? "", /codex was not found/);
    assert.match(found.howToInstall ?? "", /npm install -g @openai\/codex && kinfold agents add codex/);
  });

  it("without its adapter, or with an adapter of another version, says so", async () => {
    process.env["PATH"] = join(folder, "bin");
    const program = await put(join(folder, "bin", "codex"), "#!/bin/sh\n", 0o755);
    assert.deepEqual(findVendor(codex, options()), {
      program,
      command: [],
      problem: "Kinfold's adapter for it is not installed",
      howToInstall: "kinfold agents add codex",
    });
    const manifest = await installed("0.0.1");
    assert.match(
      findVendor(codex, options()).problem ?? "",
      /version 0\.0\.1, but version 2\.6\.0 is needed/,
    );
    await put(manifest, JSON.stringify({ version: "2.6.0" }));
    const { command, problem } = findVendor(codex, options());
    assert.equal(problem, null);
    assert.deepEqual(command, [process.execPath, join(dirname(manifest), "dist", "index.js")]);
  });

  it("with a command in the configuration uses that command and still finds the program", async () => {
    process.env["PATH"] = join(folder, "bin");
    const program = await put(join(folder, "bin", "codex"), "#!/bin/sh\n", 0o755);
    const own = { command: [process.execPath, "adapter.js"], env: [] };
    assert.deepEqual(findVendor(codex, { ...options(), own }), {
      program,
      command: own.command,
      problem: null,
      howToInstall: null,
    });
  });

  async function installed(version: string): Promise<string> {
    if (!("adapter" in codex.speaks)) throw new Error("codex has an adapter");
    const { adapter } = codex.speaks;
    const at = join(folder, "home", "agents", "codex", "node_modules", adapter.package);
    await put(join(at, adapter.entry), "");
    assert.ok("problem" in locateAdapter(adapter, { agentsDir: join(folder, "home", "agents") }));
    return put(join(at, "package.json"), JSON.stringify({ version }));
  }
});

describe("whether a person is signed in", () => {
  const look = (files: Record<string, string>, env: NodeJS.ProcessEnv = {}): Look => ({
    env,
    home: "/p",
    platform: "linux",
    has: (file) => file in files || Object.keys(files).some((one) => one.startsWith(`${file}/`)),
    read: (file) => files[file] ?? "",
  });
  const cases: [Vendor, Record<string, string>, NodeJS.ProcessEnv, boolean | null][] = [
    [claude, {}, {}, false],
    [claude, { "/p/.claude/.credentials.json": "{}" }, {}, true],
    [claude, { "/c/.credentials.json": "{}" }, { CLAUDE_CONFIG_DIR: "/c" }, true],
    [claude, {}, { ANTHROPIC_API_KEY: "k" }, true],
    [codex, {}, {}, false],
    [codex, { "/p/.codex/auth.json": "{}" }, {}, true],
    [codex, { "/p/.codex/config.toml": 'model_provider = "mine"' }, {}, null],
    [gemini, {}, {}, false],
    [gemini, { "/p/.gemini/oauth_creds.json": "{}" }, {}, true],
    [gemini, {}, { GEMINI_API_KEY: "k" }, true],
    [opencode, {}, {}, false],
    [opencode, { "/p/.local/share/opencode/auth.json": '{"a":{}}' }, {}, true],
    [opencode, { "/p/.config/opencode/opencode.json": "{}" }, {}, null],
    [goose, {}, {}, null],
    [goose, { "/p/.config/goose/config.yaml": "" }, {}, true],
  ];

  it("follows from files and variables, and is unknown if they do not show it", () => {
    for (const [vendor, files, env, expected] of cases) {
      assert.equal(vendor.signedIn(look(files, env)), expected, `${vendor.name} ${JSON.stringify(files)}`);
    }
  });
});

describe("a program's version", () => {
  it("is asked for once, and again after the program has changed", async () => {
    const asked = join(folder, "asked");
    const script = (version: string): string => `#!/bin/sh\necho x >> ${asked}\necho "it ${version} (It)"\n`;
    const program = await put(join(folder, "it"), script("1.2.3"), 0o755);
    const file = join(folder, "kept", "versions.json");
    const env = { PATH: "/bin:/usr/bin" };
    assert.equal(await new Versions(file).of(program, env), "1.2.3");
    assert.equal(await new Versions(file).of(program, env), "1.2.3");
    await put(program, script("1.2.4"), 0o755);
    await utimes(program, 1, 1);
    assert.equal(await new Versions(file).of(program, env), "1.2.4");
    const { readFile } = await import("node:fs/promises");
    assert.equal((await readFile(asked, "utf8")).split("\n").length - 1, 2);
  });

  it("is read from the npm package of the program, without starting the program", async () => {
    const at = join(folder, "lib", "node_modules", "it");
    const program = await put(join(at, "bin", "it.js"), "#!/bin/false\n", 0o755);
    await put(join(at, "package.json"), JSON.stringify({ name: "it", version: "4.5.6-linux-x64" }));
    assert.equal(await new Versions(join(folder, "v.json")).of(program, {}), "4.5.6");
  });
});

describe("a load of Gemini", () => {
  it("waits for a minute in which the session has no file yet", async () => {
    const before = process.env["GEMINI_CLI_HOME"];
    process.env["GEMINI_CLI_HOME"] = join(folder, "gemini");
    const minute = new Date().toISOString().slice(0, 16).replace(":", "-");
    const chats = join(folder, "gemini", ".gemini", "tmp", "project", "chats");
    await put(join(chats, `session-${minute}-aaaaaaaa.jsonl`), "");
    const wait = (id: string): number => gemini.load?.waitMs?.(id, "/work") ?? -1;
    const isStill = new Date().toISOString().slice(0, 16).replace(":", "-") === minute;
    if (isStill) assert.ok(wait("aaaaaaaa-1111") > 0);
    assert.ok(wait("aaaaaaaa-1111") <= 60_100);
    assert.equal(wait("bbbbbbbb-1111"), 0);
    if (before === undefined) delete process.env["GEMINI_CLI_HOME"];
    else process.env["GEMINI_CLI_HOME"] = before;
  });
});
