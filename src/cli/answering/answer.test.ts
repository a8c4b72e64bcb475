import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { after, before, describe, it } from "node:test";
import { CliHome, type Ran } from "../testing/process.ts";

const cli = new CliHome();
const kinfold = (...args: string[]): Promise<Ran> => cli.run(args);

async function json<T>(...args: string[]): Promise<T> {
  return JSON.parse((await kinfold(...args, "--json")).out) as T;
}

interface Inbox {
  readonly triggers: {
    id: string;
    shortId: string;
    sessionName: string;
    family: string | null;
    toPerson: boolean;
  }[];
}

/** Polls until this session needs a person. */
async function needs(name: string): Promise<Inbox["triggers"][number]> {
  for (;;) {
    const { triggers } = await json<Inbox>("inbox");
    const found = triggers.find((each) => each.sessionName === name);
    if (found !== undefined) return found;
    await pause(100);
  }
}

function ask(questions: object[], more: object = {}): string {
  return `sim> tool ask_user_question ${JSON.stringify({ questions, ...more })} as a\nsim> say end`;
}

before(async () => {
  const { code, err } = await kinfold("up", "--port", "0");
  assert.equal(code, 0, err);
});

after(async () => {
  assert.equal((await kinfold("down", "--force")).code, 0);
  cli.remove();
});

describe("what needs a person", () => {
  it("says so if nothing does", async () => {
    assert.equal((await kinfold("inbox")).out, "Nothing needs you.\n");
    assert.match((await kinfold()).out, /Needs you {5}0\n/);
  });

  it("a question is shown in the inbox, on the status screen and in lists, and accepts one of its options", async () => {
    await kinfold(
      "spawn",
      "--agent",
      "sim",
      "--name",
      "perf",
      ask([{ question: "Which dataset?", options: ["small", "full"] }], { default: "small" }),
    );
    await needs("perf");
    const { out } = await kinfold("inbox");
    assert.match(
      out,
      /^◆ Question {3}\d+:\d\d left\n {2}Which dataset\?\n {2}perf, asked .*\n {4}kinfold answer perf small\n/,
    );
    assert.match(out, /without an answer: small\n$/);
    assert.match(
      (await kinfold()).out,
      /Needs you {5}1 {3}perf asks: "Which dataset\?" \(\d+ min left\) +kinfold answer perf\n/,
    );
    assert.match((await kinfold("ls")).out, /^perf .*◆ needs you: "Which dataset\?"/m);
    assert.match((await kinfold("tree")).out, /^perf .*◆ needs you: "Which dataset\?"/m);
    const answered = await kinfold("answer", "perf", "SMALL");
    assert.match(answered.out, /^✓ accepted \d\d:\d\d:\d\d, seen by perf \d\d:\d\d:\d\d\n$/);
    assert.equal((await kinfold("wait", "perf")).code, 0);
    assert.match((await kinfold("show", "perf", "--transcript")).out, /small/);
    const late = await kinfold("answer", "perf", "full");
    assert.equal(late.code, 2);
    assert.match(late.err, /^perf is not asking anything\.\n/);
  });

  it("a plan is sent back with words, then approved; a decision that does not fit names those that do", async () => {
    const plan = (title: string): string =>
      `sim> tool plan_review ${JSON.stringify({ title, steps: ["one", "two"] })}`;
    await kinfold(
      "spawn",
      "--agent",
      "sim",
      "--name",
      "planner",
      `${plan("first")}\n${plan("second")}\nsim> say built`,
    );
    const first = await needs("planner");
    const wrong = await kinfold("answer", "planner", "--allow");
    assert.equal(wrong.code, 2);
    assert.match(
      wrong.err,
      /^--allow does not fit: planner has a plan\.\n {2}kinfold answer planner --approve\n/,
    );
    assert.equal((await kinfold("answer", "planner")).code, 2);
    assert.equal((await kinfold("answer", "planner", "--approve", "--cancel")).code, 2);
    assert.match((await kinfold("answer", first.shortId, "--edit", "three steps")).out, /^✓ accepted/);
    let second = await needs("planner");
    while (second.id === first.id) second = await needs("planner");
    assert.match((await kinfold("answer", "planner", "--approve")).out, /^✓ accepted .*seen by planner/);
    assert.match((await kinfold("wait", "planner")).out, /built/);
  });

  it("a permission is allowed or denied, by flag or by word", async () => {
    await kinfold(
      "spawn",
      "--agent",
      "sim",
      "--permission",
      "ask",
      "--name",
      "pusher",
      "sim> permit git push\nsim> permit npm publish\nsim> say end",
    );
    const first = await needs("pusher");
    assert.match((await kinfold("inbox")).out, /◆ Permission[^]*git push\n[^]*without an answer: denied\n/);
    await kinfold("answer", "pusher", "--allow");
    let second = await needs("pusher");
    while (second.id === first.id) second = await needs("pusher");
    await kinfold("answer", "pusher", "deny");
    await kinfold("wait", "pusher");
    const { out } = await kinfold("show", "pusher", "--transcript");
    assert.match(out, /sim: allowed[^]*sim: denied/);
  });

  it("several questions at once are answered by id", async () => {
    const questions = [
      { id: "db", question: "Which?", options: ["pg", "sqlite"] },
      { id: "port", question: "Where?" },
    ];
    await kinfold("spawn", "--agent", "sim", "--name", "two", ask(questions));
    await needs("two");
    assert.match((await kinfold("answer", "two", "db=pg", "port=5432")).out, /seen by two/);
    await kinfold("wait", "two");
    assert.match((await kinfold("show", "two", "--transcript")).out, /5432/);
  });

  it("a child's question goes to its parent, a person may answer it, and its end accepts a follow-up and an ack", async () => {
    const child = JSON.stringify({ name: "docs", prompt: ask([{ question: "Tabs?" }]) });
    await kinfold(
      "spawn",
      "--agent",
      "sim",
      "--name",
      "fam",
      `sim> tool spawn_session ${child}\nsim> say waiting`,
    );
    while (!/^└─ docs .*waiting for parent/m.test((await kinfold("tree", "fam")).out)) await pause(100);
    assert.match(
      (await kinfold("inbox")).out,
      /^Nothing needs you\. 2 sessions at work\.\n\n◐ Question   waits for its parent; you are asked in \d:\d\d\n  Tabs\?\n  docs · fam, asked .*\n    kinfold answer docs "…"\n$/,
    );
    assert.match((await kinfold("answer", "docs", "spaces")).out, /^✓ accepted/);
    assert.equal((await kinfold("wait", "fam")).code, 0);
    assert.match(
      (await kinfold("answer", "docs", "--follow-up", "sim> say more")).out,
      /^✓ accepted .*; docs continues with it\n$/,
    );
    assert.equal((await kinfold("wait", "docs")).out, "more\n");
    await kinfold("wait", "fam");
    assert.match((await kinfold("answer", "docs", "--ack")).out, /^✓ "docs" \([0-9a-f]{8}\) is closed\.\n$/);
    assert.equal((await kinfold("answer", "fam", "--ack")).code, 2);
  });

  it("an unknown session or id is answered with what to do", async () => {
    assert.match(
      (await kinfold("answer", "pref", "x")).err,
      /There is no session "pref"\.\n {2}Did you mean: perf/,
    );
    assert.match(
      (await kinfold("answer", "00000000", "x")).err,
      /^Nothing that waits for an answer has the id 00000000\./,
    );
  });
});

describe("search", () => {
  it("finds words in every transcript, or in one, and says how to open what it found", async () => {
    await kinfold("run", "--agent", "sim", "--name", "finder", "the blue heron");
    const found = await kinfold("search", "blue", "heron");
    assert.match(found.out, /^finder {2}[0-9a-f]{8} {2}sim\n {2}#\d+ {2}.*the blue heron/);
    const [, open = ""] = /Open one: kinfold (show [0-9a-f]{8} --entry \d+)/.exec(found.err) ?? [];
    assert.match((await kinfold(...open.split(" "))).out, /^finder .*entry \d of \d[^]*the blue heron/);
    assert.match((await kinfold("search", "heron", "--in", "finder")).out, /^finder /);
    assert.match((await kinfold("search", "heron", "-blue")).out, /^Nothing was found for: heron -blue\n/);
    assert.match((await kinfold("search", "heron", "-http")).out, /^finder /);
  });

  it("without words it explains how to search, and without a hit what to try", async () => {
    assert.match((await kinfold("search")).out, /kinfold search timeout -test/);
    assert.match((await kinfold("search", "herron")).out, /Did you mean: kinfold search heron\n/);
    await kinfold("run", "--agent", "sim", "--name", "blank", "nothing of it");
    const elsewhere = (await kinfold("search", "heron", "--in", "blank")).out;
    assert.match(
      elsewhere,
      /^Nothing was found in blank for: heron\n.*Without filters, in all sessions: \d hit/,
    );
    const refused = await kinfold("search", "before:someday", "heron");
    assert.match(refused.err, /^"someday" is no date for before:\. Write 2026-03-31/);
    assert.equal(refused.code, 2);
  });
});

describe("API keys", () => {
  it("a new key's secret is alone on standard output; the key works within its rights until it is revoked", async () => {
    const made = await kinfold("tokens", "create", "ci", "--can", "read,spawn", "--expires", "30d");
    assert.match(made.out, /^kfk_\S+\n$/);
    assert.match(made.err, /^ci may read, spawn in every scope, up to "workspace" in \S+, until \d{4}-/);
    assert.match((await kinfold("tokens")).out, /^ci +[0-9a-f]{16} +read, spawn +all .*valid until/m);
    const env = { KINFOLD_TOKEN: made.out.trim() };
    assert.equal((await cli.run(["ls"], { env })).code, 0);
    assert.match((await cli.run(["cancel", "perf", "-y"], { env })).err, /needs the right "cancel"/);
    assert.match((await kinfold("tokens", "revoke", "ci")).out, /^✓ ci is revoked/);
    assert.equal((await cli.run(["ls"], { env })).code, 6);
    assert.match((await kinfold("tokens", "ls")).out, /revoked/);
  });
  it("a name that was used before means the key that is still valid", async () => {
    const { out } = await kinfold("tokens", "create", "ci");
    assert.equal((await kinfold("tokens", "revoke", "ci")).code, 0);
    assert.equal((await cli.run(["ls"], { env: { KINFOLD_TOKEN: out.trim() } })).code, 6);
  });
  it("mistakes are answered with what is allowed", async () => {
    assert.match(
      (await kinfold("tokens", "create", "x", "--can", "spwan")).err,
      /Did you mean: spawn\n {2}Allowed: read, spawn/,
    );
    assert.match((await kinfold("tokens", "create")).err, /name of the key is missing/);
    assert.match((await kinfold("tokens", "revoke", "nobody")).err, /There is no API key "nobody"/);
  });
});

describe("profiles and agents", () => {
  const project = mkdtempSync(join(tmpdir(), "kinfold-project-"));
  after(() => rmSync(project, { recursive: true }));
  const file = join(project, ".kinfold", "agents", "shipper.md");
  mkdirSync(join(project, ".kinfold", "agents"), { recursive: true });
  const write = (more: string): void =>
    writeFileSync(
      file,
      `---\nname: shipper\ndescription: Ships\npermissionMode: plan\nmaxTurns: 3\n---\n${more}\n`,
    );

  it("the built-in profiles are listed and shown whole", async () => {
    const { out } = await kinfold("profiles");
    for (const name of [
      "default",
      "tester",
      "mathematician",
      "linter_fixer",
      "reviewer",
      "explorer",
      "implementer",
    ])
      assert.match(out, new RegExp(`^${name} `, "m"));
    assert.match(
      (await kinfold("profiles", "show", "reviewer")).out,
      /^reviewer {2}.*\n[^]*from {8}built in\n\n./,
    );
    assert.match((await kinfold("profiles", "show", "reviwer")).err, /Did you mean: reviewer/);
  });
  it("a project's profile is used only after it was trusted, and not after a change", async () => {
    write("Ship it.");
    const spawn = (): Promise<Ran> =>
      kinfold("spawn", "--agent", "sim", "--cwd", project, "--profile", "shipper", "hello");
    assert.match((await spawn()).err, /nobody has trusted yet/);
    assert.match((await kinfold("profiles", "trust", project)).out, /^✓ 1 profile trusted: shipper\./);
    assert.match((await spawn()).out, /permission read-only, profile shipper, limit 3 turns/);
    write("Ship it elsewhere.");
    assert.equal((await spawn()).code, 2);
  });
  it("a profile file with an error is named by profiles, doctor and the refusal, with its line", async () => {
    const own = join(cli.home, "profiles", "tester.md");
    writeFileSync(own, "---\nname: tester\ndescription: d\ncolour: red\n---\nTest it.\n");
    const problem = `${own}:4: "colour" is not a key here; did you mean "color"?`;
    const { out } = await kinfold("profiles");
    assert.ok(out.includes(`✗ tester: ${problem}`), out);
    assert.match(out, /^reviewer /m);
    const doctor = await kinfold("doctor");
    assert.equal(doctor.code, 1);
    assert.ok(doctor.out.includes(`✗ profiles: ${problem}`), doctor.out);
    assert.doesNotMatch(doctor.out, /All is well/);
    assert.ok((await kinfold("profiles", "show", "tester")).err.includes(problem));
    const refused = await kinfold("spawn", "--agent", "sim", "--profile", "tester", "hello");
    assert.equal(refused.code, 2);
    assert.ok(refused.err.includes(problem), refused.err);
    assert.equal((await kinfold("spawn", "--agent", "sim", "--profile", "reviewer", "hello")).code, 0);
    rmSync(own);
  });
  it("agents are listed with what is missing, and an adapter is only for those that need one", async () => {
    assert.match((await kinfold("agents")).out, /^sim +1\.0\.0 +yes +sim-1 +✓/m);
    assert.match((await kinfold("agents", "add", "gemini")).err, /needs no adapter/);
    assert.match((await kinfold("agents", "add", "nobody")).err, /There are adapters for claude or codex/);
  });
  it("a budget is taken from the flags, and a bad one says how to write it", async () => {
    const { out } = await kinfold("spawn", "--agent", "sim", "--turns", "4", "--minutes", "2.5", "hi");
    assert.match(out, /limit 4 turns, 2 min 30 s/);
    assert.match((await kinfold("spawn", "--usd", "much", "hi")).err, /Use a number, such as 10 or 2\.5/);
  });
  it("a session that waits for its budget is in the inbox, and goes on when its limit is raised", async () => {
    const script = "sim> usage 50 50 0\nsim> say one";
    await kinfold("run", "--agent", "sim", "--name", "spender", "--tokens", "100", script);
    await kinfold("tell", "spender", "sim> say two");
    for (;;) {
      if (/budget is used up[^]*kinfold limit spender/.test((await kinfold("inbox")).out)) break;
      await pause(50);
    }
    assert.match((await kinfold("limit", "spender")).out, /spender may use 100 tokens; used so far/);
    assert.match(
      (await kinfold("limit", "spender", "--none", "--usd", "1")).err,
      /leave the other options out/,
    );
    assert.match(
      (await kinfold("limit", "spender", "--tokens", "100000")).out,
      /✓ spender may use 100k tokens/,
    );
    assert.match((await kinfold("wait", "spender")).out, /two/);
    assert.match((await kinfold("limit", "spender", "--none")).out, /may use any amount/);
  });
});
