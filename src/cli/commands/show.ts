import type { Entry, Session } from "../../contract/index.ts";
import { askLine, asksOf } from "../answering/asking.ts";
import type { Call } from "../call.ts";
import { type Client, openConnection } from "../daemon/connection.ts";
import { showEntry } from "../show/entry.ts";
import { receiptLines } from "../show/receipt.ts";
import { markSeen } from "../show/round-end.ts";
import { findSession, labelOf, nameOf } from "../sessions.ts";
import { loweredWords, permissionWords } from "../spawning.ts";
import { ago, clip, clock, harmless, cleanLine } from "../terminal/text.ts";
import { entryLines } from "../show/transcript.ts";
import { isOpen, stateWords, surroundings } from "../show/words.ts";
import { count, tokens } from "../../text/quantity.ts";

export async function run(call: Call): Promise<void> {
  const { client } = await openConnection(call);
  const session = await findSession(client, call.args[0] ?? "");
  if (call.flags.on("transcript")) return await showTranscript(client, call, session);
  if (call.flags.on("inherited")) return await showInherited(client, call, session);
  const entry = call.flags.number("entry");
  if (entry !== undefined) return await showEntry(call, { client, session, index: entry });
  const facts = await factsOf(client, session);
  if (call.io.json) {
    const { asks: _, open: __, ...answer } = facts;
    return call.io.answer(answer);
  }
  call.io.lines(lines(facts, call));
  if (!session.seen && !isOpen(session)) await markSeen(client, session.id);
}

type Facts = Awaited<ReturnType<typeof factsOf>>;

async function factsOf(client: Client, session: Session) {
  const { id } = session;
  const [tree, receipt, end, turns, entries, asks, triggers] = await Promise.all([
    client.tree({ id }),
    client.receipt({ id }),
    client.wait({ id, timeoutMs: 0 }),
    client.turns({ id, limit: 5 }),
    client.entries({ id, limit: 12 }),
    asksOf(client),
    client.triggers({ id }),
  ]);
  return {
    session,
    family: tree.sessions,
    receipt: receipt.receipt,
    report: end.result,
    lastWords: end.lastWords,
    turns: turns.turns,
    entries: entries.entries,
    asks,
    open: triggers.triggers.filter(
      ({ status, sessionId, type }) => status === "open" && sessionId === id && QUESTIONS.has(type),
    ),
  };
}

const QUESTIONS: ReadonlySet<string> = new Set(["ask_user_question", "plan_review", "permission"]);

function lines(facts: Facts, call: Call): string[] {
  const { session } = facts;
  const { effective, evidence } = session;
  const { paint } = call.io;
  const now = Date.now();
  const state = stateWords(session, surroundings(facts.family, facts.asks)(session), now);
  const row = (title: string, text: string) => `  ${paint("soft", title.padEnd(10))} ${text}`;
  const agent = [session.agent, effective.agentVersion, session.model].filter((word) => word !== null);
  const called = session.name ?? session.title;
  const head = called === null ? session.shortId : `${nameOf(session)}  ${paint("soft", session.shortId)}`;
  const isImported = session.origin === "imported";
  const rights = isImported ? ["read from disk"] : [permissionWords(effective), ...loweredWords(effective)];
  const done = isImported ? usedLines(session) : receiptLines(facts.receipt);
  const started = `${new Date(session.createdAt).toLocaleDateString("sv")} ${clock(session.createdAt)}`;
  const unread = session.unread > 0 ? `, ${session.unread} unread in its inbox` : "";
  const out = [
    `${paint("bold", head)}  ${paint(state.colour, `${state.glyph} ${state.words}`)}`,
    row("agent", [cleanLine(agent.join(" ")), ...rights].join(", ")),
    row("folder", cleanLine(session.cwd)),
    row("family", place(facts)),
    row(
      "evidence",
      `${cleanLine(evidence.state)}: ${cleanLine(evidence.reason)} (${evidence.confidence}, ${ago(now - evidence.at)})`,
    ),
    row("started", isImported ? started : `${started}, round ${session.round}${unread}`),
    ...done.map((line, i) => row(i === 0 ? (isImported ? "used" : "receipt") : "", line)),
  ];
  if (facts.report !== null) out.push(row("report", clip(cleanLine(facts.report), 400)));
  if (facts.lastWords !== null) out.push(row("last words", clip(cleanLine(facts.lastWords), 200)));
  for (const trigger of facts.open)
    out.push(row("asks", `${askLine(trigger)}  ${paint("soft", `kinfold answer ${session.shortId} …`)}`));
  const [last] = facts.turns;
  if (last?.error) out.push(row("error", cleanLine(last.error)));
  return [...out, "", ...lastMessages(facts, call)];
}

/** Formats the usage from an imported session's file, because the daemon did not observe the session. */
function usedLines({ messageCount, toolUseCount, usage }: Session): string[] {
  const all = usage.inputTokens + usage.cachedTokens + usage.outputTokens;
  return [`${count(messageCount, "message")}, ${count(toolUseCount, "tool call")}, ${tokens(all)} tokens`];
}

function place(facts: Facts): string {
  const { session, family } = facts;
  const parent = family.find((other) => other.id === session.parentId);
  const children = family.filter((other) => other.parentId === session.id);
  const above = parent === undefined ? "root" : `child of ${labelOf(parent)}`;
  const detached = session.detachedAt === null ? "" : ", detached";
  const below = children.length === 0 ? "" : `; children: ${children.map(labelOf).join(", ")}`;
  return above + detached + below;
}

function lastMessages(facts: Facts, call: Call): string[] {
  const look = { columns: call.io.columns(), paint: call.io.paint };
  if (facts.entries.length === 0) return [call.io.paint("soft", "No message yet.")];
  const rest = facts.entries[0]?.index ?? 0;
  const more = `… ${rest} earlier; all: kinfold show ${facts.session.shortId} --transcript`;
  return [...(rest > 0 ? [call.io.paint("soft", more)] : []), ...entryLines(facts.entries, look)];
}

async function showTranscript(client: Client, call: Call, session: Session): Promise<void> {
  if (call.io.json) return call.io.answer({ session, entries: await allEntries(client, session.id) });
  const { text } = await client.transcript({ id: session.id, format: "text" });
  call.io.line(harmless(text).trimEnd());
}

async function showInherited(client: Client, call: Call, session: Session): Promise<void> {
  let text = "";
  for (let cursor: string | null = ""; cursor !== null;) {
    const page = { id: session.id, view: "inherited", ...(cursor === "" ? {} : { cursor }) } as const;
    const part = await client.inspect(page);
    text += part.text;
    ({ cursor } = part);
  }
  call.io.answer({ session, inherited: text }, harmless(text).trimEnd());
}

export async function allEntries(client: Client, id: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  let after = -1;
  for (;;) {
    const page = await client.entries({ id, after, limit: 1000 });
    entries.push(...page.entries);
    const last = page.entries.at(-1);
    if (last === undefined || last.index >= page.total - 1) return entries;
    after = last.index;
  }
}
