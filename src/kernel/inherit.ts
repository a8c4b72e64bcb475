import {
  type BriefInput,
  briefOf,
  chooseCheckpoint,
  type Constraint,
  filesNamed,
  filesTouched,
  fillsBrief,
  SHOWN_KINDS,
} from "../domain/inheritance.ts";
import { redact } from "../secrets/redact.ts";
import { redactBriefly } from "../secrets/redact-long.ts";
import { byteLength } from "../text/quantity.ts";
import type { EntryRecord, NewEntry, Reads, SessionRecord } from "../store/port/store.ts";

export interface Inherited {
  readonly entry: NewEntry;
  readonly bytes: number;
}

/** The data of the entry that contains the inherited text. */
export interface InheritedData {
  readonly mode: "brief" | "tail" | "fork";
  readonly from: string;
  /** Whether the text is sent with the first prompt. */
  readonly isSent: boolean;
  /** The agent's own id of the session to fork. */
  readonly forkOf: string | null;
  readonly checkpointId: string | null;
  /** All constraints, if the brief had no room for some of them; otherwise null. */
  readonly constraints: readonly Constraint[] | null;
}

type About = Pick<Reads, "checkpoints" | "entries" | "drafts">;

/**
 * Makes the inherited context in the transaction of the spawn, from the parent's transcript and checkpoints
 * so far. Returns null if there is nothing to pass on.
 */
export async function inherited(
  reads: About,
  of: {
    child: SessionRecord;
    parent: SessionRecord;
    mode: InheritedData["mode"];
    tailChars: number;
    now: number;
  },
): Promise<Inherited | null> {
  const { child, parent, mode, tailChars } = of;
  const { facts, checkpointId } = await factsOf(reads, parent, { mode, tailChars });
  const brief = briefOf({
    ...facts,
    of: "parent",
    fenceId: child.shortId,
    restCall: `get_session("${child.shortId}", view "inherited")`,
  });
  if (brief === null && mode !== "fork") return null;
  const isCut = brief?.cut.includes("constraints") === true;
  const data: InheritedData = {
    mode,
    from: parent.id,
    isSent: brief !== null,
    forkOf: mode === "fork" ? parent.agentSessionId : null,
    checkpointId: brief?.cut.includes("checkpoint") === true ? checkpointId : null,
    constraints: isCut ? facts.constraints : null,
  };
  const text = redactBriefly(brief?.text ?? `A fork of the conversation of ${parent.shortId}.`);
  const by = { turnId: null, author: "daemon", isSubagent: false, at: of.now } as const;
  const entry = { ...by, kind: "inherited", body: { text, input: data } } as const;
  return { entry, bytes: brief === null ? 0 : byteLength(text) };
}

/** Makes a brief of the session's own work, for an agent that starts anew because it could not resume. */
export async function ownBrief(
  reads: About,
  session: SessionRecord,
  of: { tailChars: number; fenceId: string; withoutTurnId: string },
): Promise<string | null> {
  const { tailChars, withoutTurnId } = of;
  const { facts } = await factsOf(reads, session, { mode: "brief", tailChars, withoutTurnId });
  const restCall = facts.transcriptCall;
  const brief = briefOf({ ...facts, of: "self", fenceId: of.fenceId, restCall });
  return brief === null ? null : redact(brief.text);
}

/** Returns the constraints for a session's children: the session's own, and those of its ancestors. */
async function activeConstraints(
  reads: Pick<Reads, "checkpoints">,
  session: SessionRecord,
  own: Readonly<Record<string, string>>,
): Promise<Constraint[]> {
  const above = session.parentId === null ? [] : await reads.checkpoints.constraintsAbove(session.id);
  return [...above.map((each) => each.constraints), own].flatMap((each) =>
    Object.entries(each).map(([name, text]) => ({ name, text })),
  );
}

interface Facts {
  readonly facts: Omit<BriefInput, "of" | "fenceId" | "restCall">;
  readonly checkpointId: string | null;
}

async function factsOf(
  reads: About,
  session: SessionRecord,
  of: { mode: BriefInput["mode"]; tailChars: number; withoutTurnId?: string },
): Promise<Facts> {
  const latest = await reads.checkpoints.latest(session.id);
  const { chosen, after, entities } = chooseCheckpoint(latest);
  const from = of.mode === "tail" ? -1 : after;
  const tail =
    of.mode === "fork"
      ? { entries: [], hasEarlier: false }
      : await recentEntries(reads, session, { ...of, after: from });
  const before = latest.automatic?.entities ?? [];
  const files = (): string[] => filesTouched(filesNamed(tail.entries), { before, cwd: session.cwd });
  return {
    facts: {
      mode: of.mode,
      title: session.title ?? session.name,
      checkpoint: chosen?.summary ?? null,
      entries: tail.entries,
      hasEarlier: tail.hasEarlier,
      entities: entities.length > 0 ? entities : files(),
      constraints: await activeConstraints(reads, session, latest.explicit?.constraints ?? {}),
      tailChars: of.tailChars,
      transcriptCall: `get_session("${session.shortId}", view "transcript")`,
    },
    checkpointId: chosen?.id ?? null,
  };
}

/** After this many entries of the kinds that a brief shows, no further page is read. */
const SHOWN_MAX = 512;
/** Only this many of the newest entries are searched for the kinds that a brief shows. */
const LOOKED_AT_MAX = 10_000;
const PAGE = 64;

/** Reads entries from the newest backwards, until they fill a brief or `after` is reached. */
async function recentEntries(
  reads: Pick<Reads, "entries" | "drafts">,
  session: SessionRecord,
  of: { after: number; tailChars: number; withoutTurnId?: string },
): Promise<{ entries: EntryRecord[]; hasEarlier: boolean }> {
  const after = Math.max(of.after, session.entryCount - 1 - LOOKED_AT_MAX);
  const most = { bytesMax: of.tailChars * 16, entryBytesMax: of.tailChars * 4, limit: PAGE };
  const open = await reads.drafts.ofSession(session.id);
  const isShown = open?.kind === "text" && open.turnId !== of.withoutTurnId;
  const entries: EntryRecord[] = isShown ? [open] : [];
  let before: number = Number.MAX_SAFE_INTEGER;
  for (let read = 0; read < SHOWN_MAX && before > after + 1;) {
    const page = await reads.entries.tail(session.id, { kinds: SHOWN_KINDS, after, before, ...most });
    const [first] = page;
    if (first === undefined) return { entries, hasEarlier: after > of.after };
    entries.unshift(...page.filter(({ turnId }) => turnId !== of.withoutTurnId));
    if (fillsBrief(entries, of.tailChars)) return { entries, hasEarlier: true };
    before = first.index;
    read += page.length;
  }
  return { entries, hasEarlier: before > of.after + 1 };
}
