import type { AgentStatus, CallbackConfig, Evidence } from "../contract/index.ts";
import { shortId } from "../contract/short-id.ts";
import { importedOutcome, importedStatus } from "../domain/imported.ts";
import { redact } from "../secrets/redact.ts";
import { NEW_SESSION, unmanagedEffective } from "../store/port/new-session.ts";
import type { SessionFacts } from "../history/port.ts";
import type { Judgement } from "../history/state/status.ts";
import type { SessionRecord } from "../store/port/store.ts";
import { shortLine } from "../text/fence.ts";
import { NO_USAGE } from "../contract/no-usage.ts";

/** Written out, because the schema would load all schemas into the import thread and slow down every import. */
const NO_CALLBACK: CallbackConfig = {
  enabled: false,
  includeLastMessage: true,
  includeOriginalPrompt: false,
  template: null,
  when: "completion",
  batch: false,
};

export interface RowInput {
  readonly facts: SessionFacts;
  readonly judgement: Judgement;
  readonly parentId: string | null;
  readonly depth: number;
  /** The root session's folder, for a session that does not record its own. */
  readonly cwd: string | null;
  readonly changedAt: number;
  readonly callId: string | null;
  readonly link: string | null;
}

const TITLE_MAX = 120;

/** Returns the row of a session that was read from disk. It has no rounds, inbox or turns in Kinfold. */
export function newRow(
  row: RowInput,
  identity: Pick<SessionRecord, "id" | "rootId" | "agent" | "node" | "scope">,
): SessionRecord {
  const { id, agent, node } = identity;
  const createdAt = Math.round(row.facts.createdAt ?? row.changedAt);
  return {
    ...NEW_SESSION,
    ...identity,
    shortId: shortId(id),
    name: null,
    profile: "default",
    origin: "imported",
    source: "import",
    callback: NO_CALLBACK,
    onParentEnd: "cancel",
    agentSessionId: plain(row.facts.id),
    // Work done elsewhere does not need a person's attention.
    seen: true,
    createdAt,
    key: null,
    keyCaller: null,
    keyHash: null,
    ...rowPatch(row, { agent, node, now: Date.now() }),
  };
}

/** Returns all fields that may change when the session's file or its family grows. */
export function rowPatch(row: RowInput, at: { agent: string; node: string; now: number }) {
  const { facts, judgement, parentId, depth, changedAt } = row;
  const lastActivityAt = Math.round(facts.lastAt ?? changedAt);
  const evidence: Evidence = {
    state: judgement.state,
    reason: redact(judgement.reason),
    confidence: judgement.confidence,
    at: Math.round(judgement.at ?? lastActivityAt),
  };
  const isEnded = importedStatus(evidence).status === "ended";
  const cwd = plain(facts.cwd ?? row.cwd ?? "");
  const model = facts.model === null ? null : plain(facts.model);
  return {
    parentId,
    depth,
    title: titleOf(facts),
    model,
    cwd,
    spawnConfig: spawnConfigOf(row),
    effective: unmanagedEffective({
      agent: at.agent,
      agentVersion: facts.agentVersion,
      model,
      permission: "ask",
      node: at.node,
      cwd,
    }),
    evidence,
    outcome: importedOutcome(judgement.state),
    outcomeReason: judgement.error === null ? null : shortLine(plain(redact(judgement.error)), 400),
    messageCount: facts.messageCount,
    toolUseCount: facts.toolUseCount,
    usage: facts.usage ?? NO_USAGE,
    lastActivityAt,
    updatedAt: at.now,
    endedAt: isEnded ? evidence.at : null,
    endReason: isEnded ? (judgement.state === "cancelled" ? "cancelled" : "gone") : null,
  } satisfies Partial<SessionRecord>;
}

/** Redacts the texts that are copied from an agent's file. The reader itself makes the other fields. */
export function redactFacts(facts: SessionFacts): SessionFacts {
  return {
    ...facts,
    title: clean(facts.title),
    firstPrompt: clean(facts.firstPrompt),
    description: clean(facts.description),
    calls: facts.calls.map((call) => ({
      ...call,
      description: clean(call.description),
      result: call.result === null ? null : { ...call.result, error: clean(call.result.error) },
    })),
    told: facts.told.map((told) => ({ ...told, error: clean(told.error) })),
    ending: { ...facts.ending, error: clean(facts.ending.error) },
  };
}

export function redactStatus(status: AgentStatus): AgentStatus {
  return { ...status, error: clean(status.error), description: clean(status.description) };
}

function clean<T extends string | null>(text: T): T {
  return text === null ? text : (redact(text) as T);
}

function spawnConfigOf({ facts, callId, link }: RowInput): Record<string, unknown> {
  if (!facts.isSubagent) return {};
  const { agentType, name, description } = facts;
  return {
    callId,
    link,
    agentType,
    ...(name === null ? {} : { name: redact(name) }),
    ...(description === null ? {} : { description: redact(description) }),
  };
}

function titleOf({ title, description, firstPrompt, name }: SessionFacts): string | null {
  const text = title ?? description ?? name ?? firstPrompt;
  return text === null ? null : shortLine(plain(redact(text)), TITLE_MAX);
}

/** PostgreSQL cannot store NUL in texts. */
function plain(text: string): string {
  return text.replaceAll("\0", "");
}
