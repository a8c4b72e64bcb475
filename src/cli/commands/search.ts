import { WHO } from "../show/transcript.ts";
import type { SearchHit, SearchOutput } from "../../contract/index.ts";
import type { Call, Io } from "../call.ts";
import { openConnection } from "../daemon/connection.ts";
import { findSession } from "../sessions.ts";
import { ago, clip, columnsOf, harmless, cleanLine, padTo } from "../terminal/text.ts";
import { count } from "../../text/quantity.ts";

export async function run(call: Call): Promise<void> {
  if (call.args.length === 0 && !call.io.json) return call.io.lines(guide(call.io));
  const query = call.args.join(" ");
  const { client } = await openConnection(call);
  const where = call.flags.text("in") ?? "all";
  const cursor = call.flags.text("cursor");
  const limit = call.flags.number("limit");
  const found = await client.search({
    query,
    id: where === "all" ? "all" : (await findSession(client, where)).id,
    ...(call.flags.on("newest") ? { sort: "newest" } : {}),
    ...(cursor === undefined ? {} : { cursor }),
    ...(limit === undefined ? {} : { limit }),
  });
  if (call.io.json) return call.io.answer(found);
  if (found.hits.length === 0) call.io.lines(noHitLines(found, query, where));
  call.io.lines(hitLines(found.hits, call.io));
  for (const line of footLines(found, query, call)) call.io.note(call.io.paint("soft", line));
}

const EXAMPLES = [
  ["kinfold search login redirect", "hits with more of the words come first"],
  [`kinfold search '"access denied"'`, "exactly this phrase"],
  ["kinfold search timeout -test", "with the first word, without the second"],
  ["kinfold search 'migrat*'", "words that begin like this"],
  ["kinfold search exit tool:bash agent:codex", "by agent: author: tool: path:"],
  ["kinfold search expiry after:2d", "by after: before: (yesterday, 12h, 2026-03-31)"],
  ["kinfold search retry tree:release", "in one family; --in <session> for one session"],
  ["kinfold search error --newest", "the newest first"],
] as const;

function guide({ paint }: Io): string[] {
  const width = Math.max(...EXAMPLES.map(([line]) => line.length));
  return [
    "Searches what your sessions said and did: every prompt, answer, command and tool result.",
    "",
    ...EXAMPLES.map(([line, what]) => `  ${padTo(line, width)}   ${paint("soft", what)}`),
  ];
}

/** Groups hits by session. Groups are ordered by their best hit. */
function hitLines(hits: readonly SearchHit[], io: Io): string[] {
  const bySession = Map.groupBy(hits, ({ sessionId }) => sessionId);
  return [...bySession.values()].flatMap((group, at) => [
    ...(at === 0 ? [] : [""]),
    headLine(group[0]!, io),
    ...group.map((hit) => hitLine(hit, group, io)),
  ]);
}

/** Leaves out the short id of an unnamed session, because the lineage already ends with it. */
function headLine(hit: SearchHit, { paint, columns }: Io): string {
  const lineage = hit.lineage.map((name) => cleanLine(name)).join(" › ");
  const id = `${hit.name === null ? "" : `  ${hit.shortId}`}  ${cleanLine(hit.agent)}`;
  return `${paint("bold", clip(lineage, Math.max(12, columns() - id.length)))}${paint("soft", id)}`;
}

function hitLine(hit: SearchHit, group: readonly SearchHit[], io: Io): string {
  const width = Math.max(...group.map(({ index }) => String(index).length)) + 1;
  const who = WHO[hit.author];
  const when = ago(Date.now() - hit.at);
  const head = `  ${`#${hit.index}`.padStart(width)}  ${padTo(who, 7)}  ${padTo(when, 11)}  `;
  return io.paint("soft", head) + marked(hit, io, Math.max(20, io.columns() - columnsOf(head)));
}

/** Highlights the matches: in colour, or between « and » on a terminal without colours. */
function marked({ snippet, marks }: SearchHit, io: Io, columns: number): string {
  if (harmless(snippet) !== snippet) return clip(cleanLine(snippet), columns);
  const text = clip(snippet, columns);
  // The last character of a clipped text is the ellipsis, which is never highlighted.
  const end = text === snippet ? text.length : text.length - 1;
  let line = "";
  let last = 0;
  for (const [from, to] of marks) {
    if (to > end) break;
    line += text.slice(last, from) + stressed(text.slice(from, to), io);
    last = to;
  }
  return line + text.slice(last);
}

function stressed(text: string, { paint, tty }: Io): string {
  if (paint.on) return paint("amber", text);
  return tty ? `«${text}»` : text;
}

function noHitLines(found: SearchOutput, query: string, where: string): string[] {
  const within = where === "all" ? "" : ` in ${cleanLine(where)}`;
  const lines = [`Nothing was found${within} for: ${cleanLine(query)}`];
  let meant = cleanLine(query);
  for (const { word, instead } of found.near) meant = inPlaceOf(meant, word, instead);
  if (meant !== cleanLine(query)) lines.push(`  Did you mean: ${asTyped(meant)}`);
  if (found.elsewhere) lines.push(`  Without filters, in all sessions: ${count(found.elsewhere, "hit")}`);
  if (/(?:^|\s)path:/.test(query))
    lines.push("  path: finds only files that a tool touched; leave it out to search all text.");
  for (const [, field = ""] of query.matchAll(/(?:^|\s)-?([a-z]+):/gi)) {
    if (FIELDS.includes(field.toLowerCase())) continue;
    const filters = FIELDS.map((each) => `${each}:`).join(" ");
    lines.push(`  ${field}: is not a filter, so it was searched for as a word. Filters: ${filters}`);
  }
  if ((query.match(/"/g) ?? []).length % 2 === 1)
    lines.push("  A quote is not closed, so everything after it was searched for as one phrase.");
  if (/(?:^|\s)agent:/i.test(query)) lines.push("  The agents' names: kinfold ls --all, or kinfold agents");
  if (lines.length === 1) lines.push("  Try fewer or other words, or the beginning of one: 'migrat*'.");
  return lines;
}

const FIELDS = ["agent", "author", "tool", "path", "before", "after", "tree", "sort"];

/** Replaces each occurrence of `word` in the text, even one with capital letters or accents. */
function inPlaceOf(text: string, word: string, instead: string): string {
  return text
    .split(/([\p{L}\p{N}\p{M}]+)/u)
    .map((part) => (folded(part) === word ? instead : part))
    .join("");
}

function folded(text: string): string {
  const plain = text.normalize("NFKD").replaceAll(/[\u0300-\u036f]/g, "");
  return plain.toLowerCase();
}

function footLines(found: SearchOutput, query: string, call: Call): string[] {
  const lines: string[] = [];
  const [first] = found.hits;
  if (!found.isWhole) lines.push("Older entries are still being indexed; some may be missing.");
  if (first === undefined) return lines;
  const of = found.total === null ? "" : ` of ${found.total}`;
  const rest = found.cursor === null ? "" : `${of}; more: ${asTyped(query, flagsOf(call, found.cursor))}`;
  lines.push("", `${count(found.hits.length, "hit")}${rest}`);
  lines.push(`Open one: kinfold show ${first.shortId} --entry ${first.index}`);
  return lines;
}

function flagsOf({ flags }: Call, cursor: string): string {
  const where = flags.text("in");
  const limit = flags.number("limit");
  return [
    ...(where === undefined ? [] : [`--in ${where}`]),
    ...(limit === undefined ? [] : [`--limit ${limit}`]),
    ...(flags.on("newest") ? ["--newest"] : []),
    `--cursor ${cursor}`,
  ].join(" ");
}

/** Formats a command that can be pasted into a shell, with quotes where they are needed. */
function asTyped(query: string, flags = ""): string {
  const plain = cleanLine(query);
  const quoted = /^[\w.:/ -]*$/.test(plain) ? plain : `'${plain.replaceAll("'", String.raw`'\''`)}'`;
  return `kinfold search ${quoted}${flags === "" ? "" : ` ${flags}`}`;
}
