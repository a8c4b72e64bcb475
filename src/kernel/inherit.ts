import {
  type BriefInput,
  briefOf,
  chooseCheckpoint,
  type Constraint,
  filesNamed,
  filesTouched,
} from "../domain/inheritance.ts";
import { redact } from "../domain/redact.ts";
import { byteLength } from "../domain/text.ts";
import type { EntryRecord, NewEntry, Reads, SessionRecord } from "../store/port.ts";

/** What a child is given of its parent: the entry that tells it, and how large it is. */
export interface Inherited {
  readonly entry: NewEntry;
  readonly bytes: number;
}

/** Stands in the entry beside its text. */
export interface InheritedData {
  readonly mode: "brief" | "tail" | "fork";
  readonly from: string;
  /** Whether the text goes along with the first prompt. */
  readonly isSent: boolean;
  /** The agent's own id of the conversation that is forked. */
  readonly forkOf: string | null;
  readonly checkpointId: string | null;
  /** All of them, where not all fitted. */
  readonly constraints: readonly Constraint[] | null;
}

type About = Pick<Reads, "checkpoints" | "entries">;

/**
 * Made in the transaction of the spawn, from what the parent has said and done until then. Null
 * where there is nothing to pass on.
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
  const text = redact(brief?.text ?? `A fork of the conversation of ${parent.shortId}.`);
  return {
    entry: {
      turnId: null,
      author: "daemon",
      kind: "inherited",
      body: { text, input: data },
      isSubagent: false,
      at: of.now,
    },
    bytes: brief === null ? 0 : byteLength(text),
  };
}

/** What a session tells itself where its conversation could not be loaded and starts anew. */
export async function ownBrief(
  reads: About,
  session: SessionRecord,
  of: { tailChars: number; fenceId: string; withoutTurnId: string },
): Promise<string | null> {
  const { facts } = await factsOf(reads, session, { mode: "brief", tailChars: of.tailChars });
  const entries = facts.entries.filter((entry) => entry.turnId !== of.withoutTurnId);
  const restCall = facts.transcriptCall;
  const brief = briefOf({ ...facts, entries, of: "self", fenceId: of.fenceId, restCall });
  return brief === null ? null : redact(brief.text);
}

/** Constraints that hold for a session's children: its own, and those of all above it. */
export async function activeConstraints(
  reads: Pick<Reads, "checkpoints">,
  session: SessionRecord,
  own: Readonly<Record<string, string>>,
): Promise<Constraint[]> {
  const above = session.parentId === null ? [] : await reads.checkpoints.constraintsAbove(session.id);
  return [...above.map((each) => each.constraints), own].flatMap((each) =>
    Object.entries(each).map(([name, text]) => ({ name, text })),
  );
}

/** Rendered, an entry is never much longer than its body, and most are shorter than this. */
const BYTES_PER_CHAR = 16;
const ENTRIES_MAX = 48;

interface Facts {
  readonly facts: Omit<BriefInput, "of" | "fenceId" | "restCall" | "entries"> & {
    readonly entries: readonly EntryRecord[];
  };
  readonly checkpointId: string | null;
}

async function factsOf(
  reads: About,
  session: SessionRecord,
  of: { mode: BriefInput["mode"]; tailChars: number },
): Promise<Facts> {
  const latest = await reads.checkpoints.latest(session.id);
  const { chosen, after, entities } = chooseCheckpoint(latest);
  const from = of.mode === "tail" ? -1 : after;
  const isRead = of.mode !== "fork" && session.entryCount > from + 1;
  const tail = isRead
    ? await reads.entries.tail(session.id, {
        after: from,
        bytesMax: of.tailChars * BYTES_PER_CHAR,
        limit: ENTRIES_MAX,
      })
    : { entries: [] as EntryRecord[], hasEarlier: false };
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
