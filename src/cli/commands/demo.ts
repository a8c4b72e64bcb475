import { sendSignal } from "../../system/proc.ts";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "../../client/index.ts";
import { pathsIn } from "../../config/paths.ts";
import type { Session } from "../../contract/index.ts";
import type { Call } from "../call.ts";
import type { Client } from "../daemon/connection.ts";
import { DEMO_ROOT, type DemoFacts, demoFacts, demoLines, demoLosses } from "../demo-family.ts";
import { failed } from "../failure.ts";
import { readToken } from "../daemon/home.ts";
import { followSessions } from "../terminal/live.ts";
import { waitUntilGone } from "../daemon/process-identity.ts";
import { inlineBlock } from "../terminal/screen.ts";
import { startDaemon } from "../daemon/start-daemon.ts";
import { count } from "../../text/quantity.ts";

export async function run(call: Call): Promise<number> {
  const stage = await setUp(call);
  const stop = () => void removeStage(stage, call).then(() => process.exit(130));
  for (const signal of STOPS) process.once(signal, stop);
  try {
    return await perform(stage, call);
  } finally {
    for (const signal of STOPS) process.off(signal, stop);
    await removeStage(stage, call);
  }
}

type Stage = Awaited<ReturnType<typeof setUp>>;

/** The demo has its own home and daemon, so that it touches nothing of the person's. */
async function setUp(call: Call) {
  const folder = await mkdtemp(join(tmpdir(), "kinfold-demo-"));
  const cwd = join(folder, "work");
  await mkdir(cwd);
  const paths = pathsIn(join(folder, "home"));
  const env = Object.fromEntries(Object.entries(call.env).filter(([name]) => !name.startsWith("KINFOLD_")));
  const settings = { port: await freePort(), store: "sqlite" };
  const { note } = call.io;
  try {
    const daemon = await startDaemon(paths, settings, { env, note });
    return { folder, cwd, paths, settings, env, note, daemon, isRemoved: false };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function perform(stage: Stage, call: Call): Promise<number> {
  const client = connect({ url: stage.daemon.url, token: readToken(stage.paths, {}) ?? "" });
  const begunAt = Date.now();
  const start = { ...DEMO_ROOT, agent: "sim", cwd: stage.cwd, source: "cli" } as const;
  const { session: root } = await client.create(start);
  const end = new AbortController();
  const deep = Promise.withResolvers<void>();
  const drawing = draw(client, call, { root, signal: end.signal, onDeep: deep.resolve });
  const finished = client.waitFor(root.id, { timeoutMs: FAMILY_MS });
  await Promise.race([deep.promise, finished]);
  await new Promise((resolve) => setTimeout(resolve, KILL_AFTER_MS));
  const killedMs = Date.now() - begunAt;
  await killAndRestart(stage);
  await finished;
  const facts = await demoFacts(client, root.id);
  end.abort();
  await drawing(facts);
  return report(facts, call, { stage, killedMs, tookMs: Date.now() - begunAt });
}

/** Kills only the daemon that this command started. */
async function killAndRestart(stage: Stage): Promise<void> {
  sendSignal(stage.daemon.pid, "SIGKILL");
  await waitUntilGone(stage.daemon.pid, 5_000);
  stage.daemon = await startDaemon(stage.paths, stage.settings, stage);
}

interface DrawRequest {
  readonly root: Session;
  readonly signal: AbortSignal;
  /** Called whenever a session of the third generation is seen running. May be called repeatedly. */
  readonly onDeep: () => void;
}

/** Draws until the signal is aborted. The returned function draws the last frame, the only one on a pipe. */
function draw(client: Client, call: Call, request: DrawRequest): (last: DemoFacts) => Promise<void> {
  const isLive = call.io.tty;
  const block = isLive ? inlineBlock(call.io.stdout) : null;
  let facts: DemoFacts = { sessions: [request.root], callbacks: [] };
  const lines = () => demoLines(facts, { columns: call.io.columns(), paint: call.io.paint, now: Date.now() });
  block?.draw(lines());
  const onChange = async (sessions: readonly Session[]): Promise<void> => {
    if (sessions.some((session) => session.depth >= 2 && session.status === "running")) request.onDeep();
    if (!isLive || sessions.length === 0) return;
    facts = await demoFacts(client, request.root.id).catch(() => ({ ...facts, sessions }));
    if (!request.signal.aborted) block?.draw(lines());
  };
  const following = followSessions(client, {
    tree: request.root.id,
    signal: request.signal,
    onChange: (view) => void onChange(view.sessions),
  });
  return async (last) => {
    await following;
    facts = last;
    if (block !== null) block.draw(lines());
    else if (!call.io.json) call.io.lines(lines());
    block?.end();
  };
}

type Seen = Readonly<Record<"killedMs" | "tookMs", number>> & { readonly stage: Stage };

function report(facts: DemoFacts, call: Call, seen: Seen): number {
  const losses = demoLosses(facts);
  const landed = facts.callbacks.filter((message) => message.status === "landed").length;
  const generations = Math.max(...facts.sessions.map((session) => session.depth)) + 1;
  if (call.io.json) {
    const { killedMs, tookMs } = seen;
    const sessions = facts.sessions.length;
    call.io.answer({ sessions, generations, callbacks: landed, killedMs, tookMs, losses });
    return losses.length === 0 ? 0 : 1;
  }
  if (losses.length > 0) throw failed("demo_failed", "The demo failed:", losses);
  const { paint } = call.io;
  const at = (seen.killedMs / 1000).toFixed(1);
  const seenText = `${count(facts.sessions.length, "session")}, ${count(landed, "callback")}, nothing lost`;
  const killText = `(I killed the daemon once at ${at} s; did you notice?)`;
  const joint = seenText.length + killText.length + 3 > call.io.columns() ? "\n  " : " ";
  call.io.line(`${paint("green", "✓")} ${seenText}${joint}${killText}`);
  call.io.lines(lessons(call, { ...seen, generations }));
  return 0;
}

function lessons(call: Call, seen: Seen & { generations: number }): string[] {
  const { paint } = call.io;
  const { home } = seen.stage.paths;
  const kept = [
    `  Look at it: kinfold tree --home ${home}`,
    `  Stop it: kinfold down --home ${home}   (then remove ${seen.stage.folder})`,
  ];
  const what = "each delegated work, went on, and got the result as a message.";
  return [
    paint("soft", `  ${count(seen.generations, "generation")}: ${what}`),
    ...(call.flags.on("keep") ? kept : []),
    '  Now start your own: kinfold spawn "…"   then: kinfold watch',
    "  Check your agents: kinfold doctor",
  ];
}

/** Stops the demo's daemon and removes its home, unless `--keep` was given. A second call does nothing. */
async function removeStage(stage: Stage, call: Call): Promise<void> {
  if (stage.isRemoved || call.flags.on("keep")) return;
  stage.isRemoved = true;
  sendSignal(stage.daemon.pid, "SIGTERM");
  if (!(await waitUntilGone(stage.daemon.pid, 8_000))) sendSignal(stage.daemon.pid, "SIGKILL");
  await waitUntilGone(stage.daemon.pid, 2_000);
  await rm(stage.folder, { recursive: true, force: true, maxRetries: 3 });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

const STOPS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const FAMILY_MS = 60_000;
const KILL_AFTER_MS = 700;
