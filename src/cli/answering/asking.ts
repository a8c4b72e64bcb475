import type { OutputOf, Session, Trigger } from "../../contract/index.ts";
import type { Client } from "../daemon/connection.ts";
import { labelOf, listSessions } from "../sessions.ts";
import { harmless, cleanLine } from "../terminal/text.ts";
import { count, duration } from "../../text/quantity.ts";

export type OpenTrigger = OutputOf<"listTriggers">["triggers"][number];
type Payload = Pick<Trigger, "payload">;
type Ask = Pick<Trigger, "type" | "payload">;

export interface Need {
  readonly kind: "Question" | "Plan" | "Permission" | "Limit" | "Silence";
  /** True if a parent passed the question on to the person. */
  readonly isEscalated: boolean;
  /** The full text of the question, plan or command. */
  readonly ask: readonly string[];
  readonly session: Session;
  /** The name of the family's root; null if the session is the root itself. */
  readonly family: string | null;
  /** When the default answer applies, or when a question to a parent goes to the person; null if never. */
  readonly until: number | null;
  readonly trigger: OpenTrigger | null;
}

/** Returns everything that needs a person: nearest deadline first, then oldest first. */
export async function needsOf(client: Client): Promise<Need[]> {
  const [{ triggers }, waiting] = await Promise.all([
    client.listTriggers({ for: "person" }),
    listSessions(client, { status: "waiting" }),
  ]);
  const get = sessionReader(client, waiting);
  const needs: Need[] = [];
  for (const trigger of triggers) needs.push(await needOf(trigger, trigger.deadline.defaultAt, get));
  for (const session of waiting) {
    if (session.waiting?.on !== "budget") continue;
    const ask = ["Its budget is used up."];
    const family = await familyOf(session, get);
    needs.push({ kind: "Limit", isEscalated: false, ask, session, family, until: null, trigger: null });
  }
  return needs.toSorted(nearestFirst);
}

/** Returns the triggers that wait for a parent, nearest deadline first. A person may answer them too. */
export async function parentsNeeds(client: Client): Promise<Need[]> {
  const { triggers } = await client.listTriggers({ for: "all" });
  const get = sessionReader(client, []);
  const needs: Need[] = [];
  for (const trigger of triggers)
    if (!trigger.toPerson) needs.push(await needOf(trigger, trigger.deadline.personAt, get));
  return needs.toSorted(nearestFirst);
}

export async function asksOf(client: Client): Promise<Map<string, string>> {
  const { triggers } = await client.listTriggers({ for: "person" });
  return new Map(triggers.toReversed().map((trigger) => [trigger.sessionId, askLine(trigger)]));
}

/** Returns the original type of a trigger, even if a parent has passed it on since. */
export function kindOf(trigger: Ask): string {
  const original = trigger.payload["originalType"];
  return trigger.type === "escalate" && typeof original === "string" ? original : trigger.type;
}

export function needKind(trigger: Ask): Need["kind"] {
  return KINDS[kindOf(trigger)] ?? "Question";
}

/** Examples: `"Which dataset?"`, `plan of 5 steps to approve`, `wants to run git push`. */
export function askLine(trigger: Ask): string {
  const { payload } = trigger;
  switch (kindOf(trigger)) {
    case "plan_review":
      return `plan of ${count(steps(payload).length, "step")} to approve`;
    case "permission":
      return `wants to run ${cleanLine(wanted(payload))}`;
    case "session_error":
      return cleanLine(String(payload["error"] ?? "an error"));
    default:
      return `"${cleanLine(questionsOf(trigger)[0]?.question ?? String(payload["title"] ?? trigger.type))}"`;
  }
}

export interface AskedQuestion {
  readonly id: string;
  readonly question: string;
  readonly options: readonly string[];
  readonly isMany: boolean;
}

export function questionsOf(trigger: Payload): AskedQuestion[] {
  const { questions } = trigger.payload;
  if (!Array.isArray(questions)) return [];
  return (questions as Record<string, unknown>[]).map((each, index) => ({
    id: typeof each["id"] === "string" ? each["id"] : `q${index + 1}`,
    question: String(each["question"] ?? ""),
    options: Array.isArray(each["options"]) ? each["options"].map(String) : [],
    isMany: each["type"] === "checkbox" || each["type"] === "ranked",
  }));
}

/** Returns the full text, never a summary, because a person makes a decision from it. */
export function askLines(trigger: Ask): string[] {
  const { payload } = trigger;
  switch (kindOf(trigger)) {
    case "plan_review":
      return planLines(payload);
    case "permission": {
      const folder = typeof payload["cwd"] === "string" ? [`in ${cleanLine(payload["cwd"])}`] : [];
      return [...lines(wanted(payload)), ...folder];
    }
    case "session_error":
      return lines(`It may be stuck: ${String(payload["error"] ?? "unknown")}.`);
    default: {
      const questions = questionsOf(trigger);
      if (questions.length === 1) return lines(questions[0]?.question ?? "");
      return questions.flatMap((each) => {
        const choices = each.options.length === 0 ? "" : `  [${each.options.map(cleanLine).join(" | ")}]`;
        return lines(`${each.id}: ${each.question}${choices}`);
      });
    }
  }
}

/** Examples: `3:41 left`, `2 h left`, `no limit`. */
export function timeLeft(until: number | null, now: number): string {
  if (until === null) return "no limit";
  const seconds = Math.max(0, Math.round((until - now) / 1000));
  if (seconds >= 3600) return `${duration(seconds * 1000)} left`;
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} left`;
}

export function answerCommands(
  need: Pick<Need, "kind" | "session"> & { readonly trigger: Payload | null },
): string[] {
  const name = quoted(labelOf(need.session));
  const start = `kinfold answer ${name}`;
  switch (need.kind) {
    case "Plan":
      return [`${start} --approve`, `${start} --edit "…"`, `${start} --cancel`];
    case "Permission":
      return [`${start} --allow`, `${start} --deny`];
    case "Silence":
      return [`kinfold cancel ${name}`];
    case "Limit":
      return [`kinfold limit ${name} --usd …`, `kinfold cancel ${name}`];
    case "Question": {
      const questions = need.trigger === null ? [] : questionsOf(need.trigger);
      if (questions.length > 1) return [`${start} ${questions.map((each) => `${each.id}=…`).join(" ")}`];
      const options = questions[0]?.options ?? [];
      const given = options.map((option) => `${start} ${quoted(cleanLine(option))}`);
      return [...given, `${start} "…"`];
    }
  }
}

/** Quotes a word for the shell if it needs quotes. */
export function quoted(word: string): string {
  return /^[\w.=,-]+$/.test(word) && !word.startsWith("-") ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

type SessionReader = (id: string) => Promise<Session>;

/** Returns a function that gets a session by its id and requests each session at most once. */
function sessionReader(client: Client, known: readonly Session[]): SessionReader {
  const sessions = new Map(known.map((session) => [session.id, session]));
  return async (id) => {
    const session = sessions.get(id) ?? (await client.get({ id })).session;
    sessions.set(id, session);
    return session;
  };
}

async function needOf(trigger: OpenTrigger, until: number | null, get: SessionReader): Promise<Need> {
  const session = await get(trigger.sessionId);
  return {
    kind: needKind(trigger),
    isEscalated: trigger.originalId !== null,
    ask: askLines(trigger),
    session,
    family: await familyOf(session, get),
    until,
    trigger,
  };
}

async function familyOf(session: Session, get: SessionReader): Promise<string | null> {
  return session.rootId === session.id ? null : labelOf(await get(session.rootId));
}

function nearestFirst(a: Need, b: Need): number {
  return (a.until ?? Infinity) - (b.until ?? Infinity) || askedAt(a) - askedAt(b);
}

function askedAt(need: Need): number {
  return need.trigger?.createdAt ?? need.session.waiting?.since ?? need.session.createdAt;
}

function planLines(payload: Trigger["payload"]): string[] {
  const description = typeof payload["description"] === "string" ? lines(payload["description"]) : [];
  const numbered = steps(payload).flatMap((step, index) => {
    if (typeof step === "string") return lines(`${index + 1}. ${step}`);
    const { title, detail } = step as { title?: unknown; detail?: unknown };
    const more = typeof detail === "string" ? lines(detail).map((line) => `   ${line}`) : [];
    return [...lines(`${index + 1}. ${String(title ?? "")}`), ...more];
  });
  return [...lines(String(payload["title"] ?? "")), ...description, ...numbered];
}

function steps(payload: Trigger["payload"]): readonly unknown[] {
  return Array.isArray(payload["steps"]) ? payload["steps"] : [];
}

function wanted(payload: Trigger["payload"]): string {
  return String(payload["command"] ?? payload["title"] ?? payload["tool"] ?? "something");
}

function lines(text: string): string[] {
  return harmless(text).trim().split("\n");
}

const KINDS: Readonly<Record<string, Need["kind"]>> = {
  plan_review: "Plan",
  permission: "Permission",
  session_error: "Silence",
};
