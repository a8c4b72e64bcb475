import { existsSync } from "node:fs";
import type { Agent, Health } from "../../contract/index.ts";
import { askLine, type Need, needsOf, quoted, timeLeft } from "../answering/asking.ts";
import type { Call } from "../call.ts";
import { type Connection, tryConnection } from "../daemon/connection.ts";
import { homeOf, ownVersion } from "../daemon/home.ts";
import type { Paint } from "../terminal/paint.ts";
import { labelOf } from "../sessions.ts";
import { clip, columnsOf, cleanLine, padTo, usd } from "../terminal/text.ts";
import { count, duration, tokens } from "../../text/quantity.ts";

/** Prints an overview that also names the other commands. */
export async function run(call: Call): Promise<void> {
  const connection = await tryConnection(call);
  if (connection === null) return await whenDown(call);
  const { client, url, health } = connection;
  const [found, needs] = await Promise.all([client.agents({}), needsOf(client)]);
  const agents = usableFirst(found.agents);
  if (call.io.json) {
    const triggers = needs.flatMap(({ trigger }) => trigger ?? []);
    call.io.answer({ running: true, url, health, agents, needsYou: needs.length, triggers });
    return;
  }
  call.io.lines(screen(connection, { agents, needs }, call));
}

async function whenDown(call: Call): Promise<void> {
  const isFirst = !existsSync(homeOf(call).database);
  if (call.io.json) return call.io.answer({ running: false });
  call.io.line(`${call.io.paint("bold", `kinfold ${ownVersion()}`)}   daemon not running`);
  call.io.line();
  if (isFirst)
    call.io.line("  Try it first: kinfold demo   (four sessions at work; needs no model and no API key)");
  call.io.line(`  Start it: kinfold up${isFirst ? "" : "   (unfinished work continues)"}`);
  call.io.line(`  Or just: kinfold spawn "…"   (starts the daemon by itself)`);
  call.io.line();
  call.io.lines(hints(call));
}

interface Facts {
  readonly agents: readonly Agent[];
  readonly needs: readonly Need[];
}

function screen(connection: Connection, { agents, needs }: Facts, call: Call): string[] {
  const { health, url } = connection;
  const { paint } = call.io;
  const up = duration(Date.now() - health.startedAt)
    .split(" ")
    .slice(0, 2)
    .join(" ");
  const isFirst = health.counts.sessions === 0;
  const atWork = health.counts.running + health.counts.waiting;
  const lines = [
    ...packed(
      [`${paint("bold", `kinfold ${health.version}`)}   daemon running ${up} (pid ${health.pid})`, url],
      call.io.columns(),
      "",
    ),
    "",
    ...needRows(needs, call),
    row("Working", atWork, {
      words: atWork === 0 ? "" : `in ${count(health.counts.families, "family", "families")}`,
      paint,
    }),
    withHint(
      row("Finished", health.counts.unseen, { words: finishedWords(health), paint }),
      health.counts.unseen > 0 ? "kinfold ls --unseen" : isFirst ? "" : "kinfold ls --all",
      call,
    ),
    ...packed(
      [
        `  ${padTo("Agents", 14)}${agentWords(agents[0], paint)}`,
        ...agents.slice(1).map((agent) => agentWords(agent, paint)),
      ],
      call.io.columns(),
      " ".repeat(16),
    ),
    `  ${padTo("Used today", 14)}${used(health)}`,
    "",
  ];
  if (isFirst) lines.push("  No sessions yet. Try it first: kinfold demo", "");
  return [...lines, ...hints(call)];
}

function finishedWords({ counts }: Health): string {
  if (counts.unseen > 0) return "not seen yet";
  return counts.sessions === 0 ? "" : "new since you last looked";
}

/** Lists what waits for a person, and the command that answers each. */
function needRows(needs: readonly Need[], call: Call): string[] {
  const { paint } = call.io;
  if (needs.length === 0) return [row("Needs you", 0, { words: "", paint })];
  const shown = needs.slice(0, NEEDS_SHOWN).map((need, index) => {
    const head =
      index === 0
        ? `  ${padTo("Needs you", 14)}${paint("amber", String(needs.length))}`
        : " ".repeat(16 + String(needs.length).length);
    const hint = need.kind === "Limit" ? "kinfold inbox" : `kinfold answer ${quoted(labelOf(need.session))}`;
    const room = Math.max(24, call.io.columns() - columnsOf(head) - columnsOf(hint) - 6);
    return withHint(`${head}   ${clip(needWords(need), room)}`, hint, call);
  });
  const more = needs.length - shown.length;
  return more === 0 ? shown : [...shown, `${" ".repeat(19)}and ${more} more: kinfold inbox`];
}

function needWords(need: Need): string {
  const name = labelOf(need.session);
  if (need.trigger === null) return `${name}: ${need.ask.join(" ")}`;
  const left = need.until === null ? "" : ` (${leftWords(need.until)})`;
  return need.kind === "Question"
    ? `${name} asks: ${askLine(need.trigger)}${left}`
    : `${name}: ${askLine(need.trigger)}${left}`;
}

/** Rounds to minutes, because this screen is not updated. */
function leftWords(until: number): string {
  const minutes = Math.floor((until - Date.now()) / 60_000);
  return minutes >= 1 && minutes < 60 ? `${minutes} min left` : timeLeft(until, Date.now());
}

function usableFirst(agents: readonly Agent[]): Agent[] {
  return agents.toSorted((a, b) => Number(b.installed) - Number(a.installed));
}

function row(title: string, number: number, { words, paint }: { words: string; paint: Paint }): string {
  return `  ${padTo(title, 14)}${paint(number > 0 ? "bold" : null, String(number))}${words ? `   ${words}` : ""}`;
}

/** Adds the command that shows more: right-aligned if there is room, else directly after the line. */
function withHint(line: string, hint: string, call: Call): string {
  if (hint === "") return line;
  const room = call.io.columns() - columnsOf(line) - hint.length;
  return `${line}${" ".repeat(Math.max(3, Math.min(room, 71 - columnsOf(line))))}${call.io.paint("soft", hint)}`;
}

function agentWords(agent: Agent | undefined, paint: Paint): string {
  if (agent === undefined) return "none";
  const name = cleanLine(agent.name);
  // A missing adapter also makes `installed` false. If the version is known, only the adapter is missing.
  if (!agent.installed && agent.version !== null && agent.howToInstall !== null)
    return `${name}: run ${cleanLine(agent.howToInstall)}`;
  if (!agent.installed) return `${name}: not installed`;
  const version = agent.version === null ? name : `${name} ${cleanLine(agent.version)}`;
  if (agent.signedIn === false)
    return `${name}: not signed in (${cleanLine(agent.howToSignIn ?? `run: ${name}`)})`;
  if (agent.problem !== null) return `${version}: ${cleanLine(agent.problem)}`;
  return `${version} ${paint("green", "✓")}`;
}

function used(health: Health): string {
  const { tokens: number, usd: cost } = health.usageToday;
  if (number === 0 && !cost) return "nothing";
  return `${tokens(number)} tokens${!cost ? "" : `; ≈ ${usd(cost)} at API prices`}`;
}

/** Puts words side by side, three spaces apart, on as many lines as needed. */
function packed(words: readonly string[], columns: number, indent: string): string[] {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last !== undefined && columnsOf(last) + 3 + columnsOf(word) <= columns)
      lines[lines.length - 1] = `${last}   ${word}`;
    else lines.push(last === undefined ? word : indent + word);
  }
  return lines;
}

function hints(call: Call): string[] {
  return [
    call.io.paint("soft", '  kinfold spawn "…" · run "…" · watch · inbox · search "…" · doctor · help'),
  ];
}

const NEEDS_SHOWN = 5;
