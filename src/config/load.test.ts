import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { ConfigError, SETTINGS, loadConfig, problemLine, type Loaded } from "./index.ts";

const root = mkdtempSync(join(tmpdir(), "kinfold-config-"));
after(() => rmSync(root, { recursive: true, force: true }));

let places = 0;
interface Given {
  readonly home?: string;
  readonly project?: string;
  readonly env?: Record<string, string>;
}

function place(given: Given): { home: string; cwd: string; load: () => Loaded } {
  const home = join(root, String(places), "home");
  const cwd = join(root, String(places++), "project");
  mkdirSync(home, { recursive: true });
  mkdirSync(cwd);
  if (given.home !== undefined) writeFileSync(join(home, "kinfold.yaml"), given.home);
  if (given.project !== undefined) writeFileSync(join(cwd, "kinfold.yaml"), given.project);
  return { home, cwd, load: () => loadConfig({ home, cwd, env: given.env ?? {} }) };
}

const load = (given: Given): Loaded => place(given).load();

function problemsOf(given: Given): string {
  try {
    load(given);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.message.replaceAll(root, "");
  }
  return assert.fail("the configuration was accepted");
}

describe("where a setting comes from", () => {
  it("nothing set gives the defaults, and says so for every setting", () => {
    const { config, sources, problems } = load({});
    assert.equal(config.port, 4680);
    assert.equal(config.limits.childrenMax, 8);
    assert.deepEqual(problems, []);
    assert.deepEqual(
      Object.keys(sources),
      SETTINGS.map((setting) => setting.key),
    );
    assert.deepEqual(sources["limits.childrenMax"], { value: 8, from: "default", where: null });
  });

  it("the environment beats the home, and the project lowers what they say", () => {
    const given: Given = {
      home: "agent: one\nport: 1\nlimits:\n  depthMax: 4\n  childrenMax: 4\n",
      project: "limits:\n  depthMax: 3\n",
      env: { KINFOLD_AGENT: "three", KINFOLD_PORT: "2" },
    };
    const at = place(given);
    const { sources } = at.load();
    assert.deepEqual(sources.agent, { value: "three", from: "environment", where: "KINFOLD_AGENT" });
    assert.deepEqual(sources.port, { value: 2, from: "environment", where: "KINFOLD_PORT" });
    assert.deepEqual(sources["limits.depthMax"], {
      value: 3,
      from: "project file",
      where: `${join(at.cwd, "kinfold.yaml")}:2`,
    });
    assert.deepEqual(sources["limits.childrenMax"], {
      value: 4,
      from: "home file",
      where: `${join(at.home, "kinfold.yaml")}:5`,
    });
  });

  it("every setting has its own variable, and words become what the setting wants", () => {
    assert.equal(new Set(SETTINGS.map((setting) => setting.env)).size, SETTINGS.length);
    const { config } = load({
      env: {
        KINFOLD_LIMITS_SPAWNS_PER_MINUTE_MAX: "1_000",
        KINFOLD_ALLOW_REMOTE: "yes",
        KINFOLD_ALLOW_HOSTS: "a.test, b.test",
        KINFOLD_CALLBACK_WHEN: "turn",
        KINFOLD_AGENTS: '{ mine: { command: ["my-agent", "--acp"] } }',
        KINFOLD_TLS_CERT: "c.pem",
        KINFOLD_TLS_KEY: "k.pem",
        KINFOLD_HOST: "",
      },
    });
    assert.equal(config.limits.spawnsPerMinuteMax, 1000);
    assert.equal(config.allowRemote, true);
    assert.deepEqual(config.allowHosts, ["a.test", "b.test"]);
    assert.equal(config.callback.when, "turn");
    assert.deepEqual(config.agents.mine?.command, ["my-agent", "--acp"]);
    assert.deepEqual(config.tls, { cert: "c.pem", key: "k.pem" });
    assert.equal(config.host, "127.0.0.1");
  });

  it("a variable that is empty was not given", () => {
    assert.equal(load({ env: { KINFOLD_PORT: "" } }).sources.port?.from, "default");
    assert.equal(load({ env: { KINFOLD_PORT: "0" } }).config.port, 0);
  });

  it("a daemon in its own home reads that file as the home's", () => {
    const { home } = place({ home: "host: 127.0.0.2\n" });
    const loaded = loadConfig({ home, cwd: home, env: {} });
    assert.equal(loaded.config.host, "127.0.0.2");
    assert.deepEqual(loaded.problems, []);
  });
});

describe("a project's file", () => {
  const forbidden = {
    agents: "agents:\n  claude:\n    command: [curl, evil.test]\n",
    host: "host: 0.0.0.0\n",
    allowRemote: "allowRemote: true\n",
    store: "store: postgres://evil.test/x\n",
    "tls.cert": "tls:\n  cert: a\n",
    roots: "roots: [/]\n",
    allowHosts: "allowHosts: [evil.test]\n",
    sandbox: "sandbox: guard\n",
    agent: "agent: evil\n",
    "callback.template": "callback:\n  template: x\n",
    "limits.turnsMax": "limits:\n  turnsMax: 1\n",
  };
  for (const [key, project] of Object.entries(forbidden)) {
    it(`may not set ${key}, and this is reported`, () => {
      const before = load({});
      const { config, problems } = load({ project });
      assert.deepEqual(config, before.config);
      assert.equal(problems.length, 1);
      assert.equal(problems[0]?.key, key);
      assert.match(problemLine(problems[0]), /kinfold\.yaml:[12]: .* may not set it/);
    });
  }

  it("may lower a limit and never raise it", () => {
    const { config, problems } = load({
      home: "limits:\n  childrenMax: 4\n",
      project: "limits:\n  childrenMax: 5\n  depthMax: 2\n",
    });
    assert.equal(config.limits.childrenMax, 4);
    assert.equal(config.limits.depthMax, 2);
    assert.match(problems.map(problemLine).join(), /:2: limits\.childrenMax .* 5 is looser than 4/);
  });

  it("may make the permission stricter and never looser", () => {
    assert.equal(load({ project: "permission: ask\n" }).config.permission, "ask");
    const loose = load({ home: "permission: ask\n", project: "permission: full\n" });
    assert.equal(loose.config.permission, "ask");
    assert.match(loose.problems.map(problemLine).join(), /full is looser than ask/);
  });

  it("lowers what the environment says, and so do the files above it up to the git top level", () => {
    const at = place({ project: "permission: ask\n", env: { KINFOLD_PERMISSION: "full" } });
    assert.equal(at.load().config.permission, "ask");
    const below = join(at.cwd, "a", "b");
    mkdirSync(below, { recursive: true });
    const here = (): Loaded => loadConfig({ home: at.home, cwd: below, env: {} });
    assert.equal(here().config.permission, "workspace", "without git its own folder alone counts");
    mkdirSync(join(at.cwd, ".git"));
    assert.equal(here().sources["permission"]?.where, `${join(at.cwd, "kinfold.yaml")}:1`);
  });

  it("that is a FIFO or a link is refused and blocks nothing", () => {
    const fifo = place({});
    execFileSync("mkfifo", [join(fifo.cwd, "kinfold.yaml")]);
    assert.throws(() => fifo.load(), /is not a plain file/);
    const link = place({});
    symlinkSync("/dev/zero", join(link.cwd, "kinfold.yaml"));
    assert.throws(() => link.load(), /is a link/);
  });
});

describe("a bad file is an error with its place", () => {
  it("an unknown key names file, line and the nearest key", () => {
    assert.match(
      problemsOf({ home: "port: 1\nlimits:\n  childrnMax: 4\n" }),
      /home\/kinfold\.yaml:3: limits\.childrnMax is not a setting; did you mean limits\.childrenMax\?/,
    );
    assert.match(
      problemsOf({ home: "childrenMax: 4\n" }),
      /:1: childrenMax .* did you mean limits\.childrenMax\?/,
    );
    assert.match(problemsOf({ home: "limit:\n  depthMax: 1\n" }), /did you mean limits\?/);
    assert.match(problemsOf({ home: "zzzzzz: 1\n" }), /`kinfold config` lists them all/);
  });

  it("every problem is reported at once", () => {
    const text = problemsOf({
      home: "prt: 1\nport: high\n",
      project: "permission: root\n",
      env: { KINFOLD_LIMITS_DEPTH_MAX: "deep" },
    });
    assert.match(text, /home\/kinfold\.yaml:1: prt .*did you mean port/);
    assert.match(text, /home\/kinfold\.yaml:2: port is not valid/);
    assert.match(text, /project\/kinfold\.yaml:1: permission is not valid/);
    assert.match(text, /KINFOLD_LIMITS_DEPTH_MAX: limits\.depthMax is not valid/);
  });

  it("text that is no YAML names the line", () => {
    assert.match(problemsOf({ home: "port: 1\nhost: [\n" }), /kinfold\.yaml:\d: is not valid YAML/);
    assert.match(problemsOf({ home: "port: 1\nport: 2\n" }), /kinfold\.yaml:2: is not valid YAML/);
    assert.match(problemsOf({ home: "- port\n" }), /must be a list of `key: value` lines/);
  });

  it("a value that is missing or of the wrong type is named", () => {
    assert.match(problemsOf({ home: "port:\n" }), /:1: port is empty/);
    assert.match(problemsOf({ home: "limits: 4\n" }), /:1: limits needs settings below it/);
    assert.match(problemsOf({ env: { KINFOLD_PORT: "http" } }), /KINFOLD_PORT: port is not valid/);
    assert.match(problemsOf({ env: { KINFOLD_PORT: "70000" } }), /KINFOLD_PORT: port is not valid/);
    assert.match(
      problemsOf({ home: "agents:\n  x: { command: [] }\n" }),
      /:1: agents is not valid: x\.command/,
    );
  });

  it("a certificate without its key is named by where the certificate is set", () => {
    assert.match(problemsOf({ home: "tls:\n  cert: a.pem\n" }), /:2: tls\.key is not valid/);
  });

  it("an empty file, a file of comments and an empty section set nothing", () => {
    for (const home of ["", "# nothing\n", "limits:\n"])
      assert.deepEqual(load({ home }).config, load({}).config);
  });

  it("a key called __proto__ is an unknown key and nothing more", () => {
    assert.match(problemsOf({ home: "__proto__:\n  port: 1\n" }), /__proto__ is not a setting/);
    assert.equal(({} as { port?: number }).port, undefined);
  });
});

it("a misspelt variable is reported and is no error; other variables are ignored", () => {
  const { problems } = load({ env: { KINFOLD_PROT: "1", KINFOLD_TOKEN: "x", KINFOLD_CI_BUILD_NUMBER: "7" } });
  assert.deepEqual(problems.map(problemLine), ["KINFOLD_PROT: is not a setting; did you mean KINFOLD_PORT?"]);
});
