import type { Message, Session } from "../contract/index.ts";
import type { Client } from "./daemon/connection.ts";
import type { Paint } from "./terminal/paint.ts";
import { placed } from "./show/family.ts";
import { labelOf } from "./sessions.ts";
import { clip, columnsOf, padTo } from "./terminal/text.ts";
import { isOpen, stateWords, surroundings } from "./show/words.ts";
import { duration } from "../text/quantity.ts";

/** The root of the demo's four sessions in three generations, all played by the sim agent. */
export const DEMO_ROOT = {
  name: "plan a release",
  prompt: script([
    "plan Give the tests away; Give the changelog away; Release",
    spawnStep("tests", [
      "write test.log 211 of 212 pass",
      "sleep 500",
      spawnStep("fix flaky test", [
        "write port.test.js // waits for the port, not for a second",
        "sleep 2600",
        "say It waits for the port now; 200 runs, no failure.",
      ]),
      "sleep 700",
      "say 211 of 212 pass; the flaky one is being fixed.",
    ]),
    spawnStep("changelog", ["write CHANGELOG.md ## 2.4", "sleep 3200", "say Wrote the changelog of 2.4."]),
    "sleep 400",
    "say Both are at work; each reports by itself.",
  ]),
};

export interface DemoFacts {
  readonly sessions: readonly Session[];
  readonly callbacks: readonly Message[];
}

export async function demoFacts(client: Client, rootId: string): Promise<DemoFacts> {
  const { sessions } = await client.tree({ id: rootId });
  const inboxes = await Promise.all(sessions.map((session) => client.inbox({ id: session.id, all: true })));
  const callbacks = inboxes
    .flatMap((inbox) => inbox.messages)
    .filter((message) => message.kind === "callback");
  return { sessions, callbacks };
}

/** Draws lines such as `├─ "tests"   sim  completed 1.2 s   → reported to root`. */
export function demoLines(facts: DemoFacts, look: { columns: number; paint: Paint; now: number }): string[] {
  const around = surroundings(facts.sessions);
  const rows = placed(facts.sessions).map(({ session, branch }) => ({
    session,
    head: branch === "" ? `root  "${labelOf(session)}"` : `${branch}"${labelOf(session)}"`,
    state: stateWords(session, around(session), look.now),
    reportedTo: reportedTo(session, facts),
  }));
  const width = Math.max(...rows.map((row) => columnsOf(row.head)));
  return rows.map(({ session, head, state, reportedTo: parent }) => {
    const isDone = state.words === "done";
    const words = isDone ? `completed ${duration(session.lastActivityAt - session.createdAt)}` : state.words;
    const line = `${words}${parent === null ? "" : `   → reported to ${parent}`}`;
    const room = look.columns - width - columnsOf(session.agent) - 6;
    return `  ${padTo(head, width)}  ${session.agent}  ${look.paint(isDone ? "green" : state.colour, clip(line, room))}`;
  });
}

/** Lists each session that did not complete, and each callback that is missing, repeated or not landed. */
export function demoLosses(facts: DemoFacts): string[] {
  const losses: string[] = [];
  for (const session of facts.sessions) {
    if (isOpen(session) || session.outcome !== "completed")
      losses.push(`"${labelOf(session)}" did not complete`);
    if (session.parentId === null) continue;
    const callbacks = callbacksOf(session, facts);
    if (callbacks.length !== session.round)
      losses.push(`"${labelOf(session)}" called back ${callbacks.length} times for ${session.round} rounds`);
    for (const callback of callbacks)
      if (callback.status !== "landed")
        losses.push(`a callback of "${labelOf(session)}" is ${callback.status}`);
  }
  return losses;
}

function reportedTo(session: Session, facts: DemoFacts): string | null {
  if (!callbacksOf(session, facts).some(({ status }) => status === "landed" || status === "taken"))
    return null;
  const parent = facts.sessions.find((other) => other.id === session.parentId);
  if (parent === undefined) return null;
  return parent.parentId === null ? "root" : labelOf(parent);
}

function callbacksOf(session: Session, facts: DemoFacts): Message[] {
  return facts.callbacks.filter((message) => message.metadata["childSessionId"] === session.id);
}

function spawnStep(name: string, steps: readonly string[]): string {
  return `tool spawn_session ${JSON.stringify({ name, prompt: script(steps) })}`;
}

function script(steps: readonly string[]): string {
  return steps.map((step) => `sim> ${step}`).join("\n");
}
