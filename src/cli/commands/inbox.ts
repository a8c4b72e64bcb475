import { answerCommands, type Need, needsOf, parentsNeeds, timeLeft } from "../answering/asking.ts";
import type { Call } from "../call.ts";
import { openConnection } from "../daemon/connection.ts";
import { labelOf } from "../sessions.ts";
import { ago, cleanLine } from "../terminal/text.ts";
import { count } from "../../text/quantity.ts";

export async function run(call: Call): Promise<void> {
  const { client, health } = await openConnection(call);
  const [needs, parents] = await Promise.all([needsOf(client), parentsNeeds(client)]);
  if (call.io.json)
    return call.io.answer({
      triggers: needs.flatMap(({ trigger, family }) => (trigger === null ? [] : [{ ...trigger, family }])),
      limits: needs.filter(({ trigger }) => trigger === null).map(({ session }) => session),
      forParents: parents.map(({ trigger, family }) => ({ ...trigger, family })),
    });
  if (needs.length === 0) {
    const atWork = health.counts.running + health.counts.waiting;
    call.io.line(`Nothing needs you.${atWork === 0 ? "" : ` ${count(atWork, "session")} at work.`}`);
  }
  for (const [index, need] of needs.entries()) {
    if (index > 0) call.io.line();
    call.io.lines(needLines(need, call, Date.now()));
  }
  for (const need of parents) {
    call.io.line();
    call.io.lines(parentLines(need, call, Date.now()));
  }
}

/** Formats a question that waits for a parent, with the time after which the person is asked too. */
function parentLines(need: Need, call: Call, now: number): string[] {
  const { paint } = call.io;
  const when =
    need.until === null ? "" : `; you are asked in ${timeLeft(need.until, now).replace(/ left$/, "")}`;
  return [
    `◐ ${paint("bold", need.kind)}   ${paint("soft", `waits for its parent${when}`)}`,
    ...askAndSession(need, call, now),
    ...answerCommands(need).map((line) => `    ${line}`),
  ];
}

/** Shows the time left, the full request, who asks, how to answer, and what happens without an answer. */
function needLines(need: Need, call: Call, now: number): string[] {
  const { paint } = call.io;
  const kind = need.isEscalated ? `${need.kind}, passed on by its parent` : need.kind;
  const isUrgent = need.until !== null && need.until - now < 60_000;
  const context = need.trigger?.context;
  return [
    `${paint("amber", "◆")} ${paint("bold", kind)}   ${paint(isUrgent ? "bold" : "soft", timeLeft(need.until, now))}`,
    ...askAndSession(need, call, now),
    ...(context == null ? [] : [`  its parent says: "${cleanLine(context)}"`]),
    ...answerCommands(need).map((line) => `    ${line}`),
    ...fallback(need).map((line) => paint("soft", `  ${line}`)),
  ];
}

function askAndSession({ ask, session, family, trigger }: Need, call: Call, now: number): string[] {
  const below = family === null ? "" : ` · ${family}`;
  const asked = trigger === null ? "" : `, asked ${ago(now - trigger.createdAt)}`;
  const who = call.io.paint("soft", `  ${labelOf(session)}${below}${asked}`);
  return [...ask.map((line) => `  ${line}`), who];
}

function fallback(need: Need): string[] {
  if (need.until === null || need.trigger === null) return [];
  const { default: stated } = need.trigger;
  if (need.kind === "Permission") return ["without an answer: denied"];
  return stated === null ? [] : [`without an answer: ${cleanLine(stated)}`];
}
