import type { EntryAuthor, EntryBody, EntryKind } from "../contract/index.ts";
import { asData, field, headOf, inline, type Label, labelled, tailOf } from "./inherited-text.ts";

/** An entry of the transcript that a brief is made from. */
export interface BriefEntry {
  readonly author: EntryAuthor;
  readonly kind: EntryKind;
  readonly body: EntryBody;
  readonly isSubagent: boolean;
}

export interface Constraint {
  readonly name: string;
  readonly text: string;
}

/** What a brief is made from. The same input gives the same brief, byte for byte. */
export interface BriefInput {
  /** `brief`: all sections. `tail`: recent context only. `fork`: the child gets the conversation itself. */
  readonly mode: "brief" | "tail" | "fork";
  /** Whose context the brief has. `parent`: the parent's, for a child. `self`: the session's own, again. */
  readonly of: "parent" | "self";
  readonly title: string | null;
  readonly checkpoint: string | null;
  /** Entries since the checkpoint, oldest first. */
  readonly entries: readonly BriefEntry[];
  /** The session has entries since the checkpoint that are older than `entries`. */
  readonly hasEarlier: boolean;
  readonly entities: readonly string[];
  /** The constraints of the topmost ancestor come first. */
  readonly constraints: readonly Constraint[];
  readonly tailChars: number;
  /** Id of the fences around tool output. The output's authors do not know it, so they can forge no fence. */
  readonly fenceId: string;
  /** Tool calls that the brief names: for entries older than it shows, and for the rest of a cut section. */
  readonly transcriptCall: string;
  readonly restCall: string;
}

export interface Brief {
  readonly text: string;
  readonly cut: readonly ("checkpoint" | "constraints")[];
}

/**
 * Makes the brief, without a model; null if it would be empty. When room is short, constraints are placed
 * first, then the checkpoint, the recent context and the entities. The text shows where something was cut.
 */
export function briefOf(input: BriefInput): Brief | null {
  const head = `${HEADINGS[input.of]}\n\n${title(input.title)}`;
  let room = briefCharsMax(input.tailChars) - head.length;
  const take = (section: string | null): string | null => {
    if (section === null || section.length + 1 > room) return null;
    room -= section.length + 1;
    return section;
  };
  const isWhole = input.mode === "brief";
  const constraints = take(constraintLine(input, room - 1));
  const checkpoint = isWhole ? take(checkpointSection(input, Math.min(CHECKPOINT_CHARS, room - 1))) : null;
  const recent = input.mode === "fork" ? null : take(recentSection(input, room - 1));
  const entities = isWhole ? take(entityLine(input.entities, Math.min(ENTITY_CHARS, room - 1))) : null;
  const sections = [checkpoint, recent, entities, constraints].filter((each) => each !== null);
  if (sections.length === 0) return null;
  return { text: [head, ...sections].join("\n"), cut: cutOf(input, { checkpoint, constraints }) };
}

export const SHOWN_KINDS = [
  "text",
  "plan",
  "toolCall",
  "toolResult",
  "callback",
  "trigger",
] as const satisfies readonly EntryKind[];

/** Returns whether these entries already fill the brief, so that earlier ones need not be read. */
export function fillsBrief(entries: readonly BriefEntry[], tailChars: number): boolean {
  return !shownEntries({ entries, tailChars, fenceId: "", hasEarlier: false }, tailChars).isAll;
}

export function briefCharsMax(tailChars: number): number {
  return tailChars + 9_000;
}

export const HEADINGS = {
  parent: "## Inherited from Parent Session",
  self: "## From Your Own Earlier Conversation",
} as const;

export interface CheckpointLike {
  readonly summary: string;
  readonly entities: readonly string[];
  readonly entryIndex: number;
  readonly at: number;
}

/**
 * Chooses the newer of the session's checkpoint and its agent's compaction summary. Recent context then
 * begins after the chosen one. If neither exists, chooses the automatic checkpoint, which does not shorten
 * the recent context.
 */
export function chooseCheckpoint<T extends CheckpointLike>(of: {
  readonly explicit: T | null;
  readonly compaction: T | null;
  readonly automatic: T | null;
}): { chosen: T | null; after: number; entities: readonly string[] } {
  const { explicit, compaction, automatic } = of;
  const isCompacted =
    compaction !== null &&
    (explicit === null ||
      compaction.entryIndex > explicit.entryIndex ||
      (compaction.entryIndex === explicit.entryIndex && compaction.at > explicit.at));
  const stated = isCompacted ? compaction : explicit;
  const named = [stated, explicit].find((each) => each !== null && each.entities.length > 0);
  return {
    chosen: stated ?? automatic,
    after: stated?.entryIndex ?? -1,
    entities: named?.entities ?? [],
  };
}

export function filesNamed(entries: readonly Pick<BriefEntry, "kind" | "body">[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { kind, body } of entries) {
    if (kind !== "toolCall") continue;
    for (const path of body.paths ?? []) counts.set(path, (counts.get(path) ?? 0) + 1);
  }
  return counts;
}

/**
 * Returns the files in `counts`, most often touched first, then the files in `before`. A path inside the
 * session's folder is made relative to that folder.
 */
export function filesTouched(
  counts: ReadonlyMap<string, number>,
  of: { before: readonly string[]; cwd: string },
): string[] {
  const inside = of.cwd.endsWith("/") ? of.cwd : `${of.cwd}/`;
  const touched = [...counts].toSorted((a, b) => b[1] - a[1]).map(([path]) => path);
  const names = [...touched, ...of.before].map((path) =>
    path.startsWith(inside) ? path.slice(inside.length) : path,
  );
  return [...new Set(names)].slice(0, FILES_MAX);
}

/** Summarizes a session that gave no checkpoint: its title and its last plan. */
export function automaticSummary(
  sessionTitle: string | null,
  plan: readonly { readonly title: string; readonly status: string }[],
): string {
  const steps = plan.map((step) => `- [${field(step.status, 30)}] ${field(step.title, 200)}`);
  return [title(sessionTitle), ...(steps.length === 0 ? [] : ["Plan:", ...steps])].join("\n");
}

const CHECKPOINT_CHARS = 6_000;
const ENTITY_CHARS = 1_000;
const FILES_MAX = 12;

function title(text: string | null): string {
  return field(text ?? "", 120) || "active session";
}

function constraintLine({ constraints, restCall }: BriefInput, room: number): string | null {
  const all = distinct(constraints.map(({ name, text }) => `${inline(name)}: ${inline(text)}`));
  if (all.length === 0) return null;
  const whole = `${CONSTRAINTS} ${all.join("; ")}`;
  if (whole.length <= room) return whole;
  const note = (left: number): string => `(${left} of ${all.length} did not fit: ${restCall})`;
  const kept: string[] = [];
  let left = room - CONSTRAINTS.length - 1 - note(all.length).length;
  for (const each of all) {
    if (each.length + 2 > left) continue;
    kept.push(each);
    left -= each.length + 2;
  }
  return `${CONSTRAINTS} ${[...kept, note(all.length - kept.length)].join("; ")}`;
}

function checkpointSection({ checkpoint, title: of, restCall }: BriefInput, room: number): string | null {
  const summary = checkpoint === null ? "" : asData(checkpoint);
  // A checkpoint that only repeats the title adds nothing.
  if (summary === "" || summary === title(of)) return null;
  const section = (text: string): string => `Checkpoint:\n${text.replace(/^(?=.)/gm, "  ")}`;
  const whole = section(summary);
  if (whole.length <= room) return whole;
  const note = `\n  (cut; all of it: ${restCall})`;
  return headOf(summary, room - note.length, section)?.concat(note) ?? null;
}

/** Shows the newest entries whole. If half of the room is still free, adds the end of the next older one. */
function recentSection(input: BriefInput, room: number): string | null {
  const limit = Math.min(input.tailChars, room - RECENT.length - 1);
  if (limit <= 0) return null;
  const { shown, isAll } = shownEntries(input, limit);
  if (shown.length === 0) return null;
  if (isAll) return [RECENT, ...shown.map((each) => each.text)].join("\n");
  const note = `  (earlier: ${input.transcriptCall})`;
  const kept = newest(shown, { limit: limit - note.length - 1, fenceId: input.fenceId });
  return kept.length === 0 ? null : [RECENT, note, ...kept].join("\n");
}

interface Shown {
  readonly label: Label;
  readonly text: string;
}

/** Renders entries, newest first, until the room is full; returns them oldest first. */
function shownEntries(
  input: Pick<BriefInput, "entries" | "tailChars" | "fenceId" | "hasEarlier">,
  limit: number,
): { shown: Shown[]; isAll: boolean } {
  const shown: Shown[] = [];
  let left = limit + 1;
  for (const entry of withResults(input.entries).toReversed()) {
    const label = left < 0 ? null : labelOf(entry, input);
    if (label === null) continue;
    const text = labelled(label, input.fenceId);
    shown.unshift({ label, text });
    left -= text.length + 1;
  }
  return { shown, isAll: left >= 0 && !input.hasEarlier };
}

function newest(shown: readonly Shown[], of: { limit: number; fenceId: string }): string[] {
  const kept: string[] = [];
  let left = of.limit;
  for (const { label, text } of shown.toReversed()) {
    if (text.length + 1 > left) {
      const isScant = left > of.limit / 2;
      const end = isScant ? tailOf(label, left - 1, of.fenceId) : null;
      return end === null ? kept : [end, ...kept];
    }
    kept.unshift(text);
    left -= text.length + 1;
  }
  return kept;
}

/** Marks tool calls without a result. Drops `checkpoint` calls: the brief already shows their content. */
function withResults(entries: readonly BriefEntry[]): (BriefEntry & { isOpen: boolean })[] {
  const ended = new Set(entries.flatMap(({ kind, body }) => (kind === "toolResult" ? [body.callId] : [])));
  const isOwn = ({ kind, body }: BriefEntry): boolean =>
    (kind === "toolCall" || kind === "toolResult") && body.tool === "checkpoint";
  return entries
    .filter((entry) => !isOwn(entry))
    .map((entry) => ({ ...entry, isOpen: entry.kind === "toolCall" && !ended.has(entry.body.callId) }));
}

/** Returns null for entries that are not passed on: thoughts, notices, and this session's own brief. */
function labelOf(
  entry: BriefEntry & { isOpen: boolean },
  { tailChars }: Pick<BriefInput, "tailChars">,
): Label | null {
  const { kind, body } = entry;
  const who = entry.isSubagent ? "agent's own sub-agent" : AUTHORS[entry.author];
  const max = tailChars * 2;
  const dataMax = Math.max(200, Math.floor(tailChars / 4));
  switch (kind) {
    case "text":
      return prose(who, asData(body.text, max));
    case "plan": {
      const steps = (body.steps ?? []).map((step) => `[${field(step.status, 30)}] ${field(step.title, 200)}`);
      return prose(`${who}, plan`, steps.length === 0 ? asData(body.text, max) : steps.join("; "));
    }
    case "toolCall": {
      const tool = field(body.tool ?? "a tool", 60);
      const what = field(body.command ?? body.text, 200);
      const about = what === tool || what === "" ? "" : `: ${what}`;
      return { label: `${who} calls ${tool}${about}${entry.isOpen ? " (no result yet)" : ""}`, body: "" };
    }
    case "toolResult": {
      const exit = typeof body.exitCode === "number" ? ` (exit ${body.exitCode})` : "";
      const how = body.ok === false ? "failed" : "returned";
      return data(`${field(body.tool ?? "a tool", 60)} ${how}${exit}`, asData(body.text, dataMax));
    }
    case "callback":
    case "trigger":
      return data(kind === "callback" ? "a child's end" : "a trigger", asData(body.text, dataMax));
    default:
      return null;
  }
}

function prose(label: string, body: string): Label | null {
  return body === "" ? null : { label, body, form: "prose" };
}

function data(label: string, body: string): Label {
  return body === "" ? { label, body } : { label, body, form: "data" };
}

function entityLine(entities: readonly string[], room: number): string | null {
  const all = distinct(entities.map((each) => field(each, 200))).filter((each) => each !== "");
  const kept: string[] = [];
  let left = room - ENTITIES.length - " (and 50 more)".length;
  for (const each of all) {
    if (each.length + 2 > left) break;
    kept.push(each);
    left -= each.length + 2;
  }
  if (kept.length === 0) return null;
  const more = all.length - kept.length;
  return `${ENTITIES} ${kept.join(", ")}${more === 0 ? "" : ` (and ${more} more)`}`;
}

function cutOf(
  input: BriefInput,
  made: { checkpoint: string | null; constraints: string | null },
): ("checkpoint" | "constraints")[] {
  const cut: ("checkpoint" | "constraints")[] = [];
  if (made.checkpoint?.endsWith(`all of it: ${input.restCall})`)) cut.push("checkpoint");
  if (made.constraints?.endsWith(`did not fit: ${input.restCall})`)) cut.push("constraints");
  return cut;
}

function distinct(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}

const RECENT = "Recent context:";
const ENTITIES = "Focal entities:";
const CONSTRAINTS = "Active constraints:";
const AUTHORS = {
  person: "user",
  agent: "agent",
  tool: "tool",
  session: "another session",
  daemon: "kinfold",
} as const;
