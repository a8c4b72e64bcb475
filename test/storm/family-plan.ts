import { script, spawnStep, tool } from "../support/script.ts";
import type { Chance } from "./chance.ts";

const GENERATIONS = 3;

export interface FamilyPlan {
  readonly name: string;
  readonly prompt: string;
}

export interface Leaving {
  /** A text in the command line of every process that a script leaves behind. */
  readonly mark: string;
  /** Whether a process left behind may hide: clear its environment and detach from its parent at once. */
  readonly mayHide: boolean;
}

/** Plans a root with children and grandchildren, and a script for each. */
export function familyPlan(chance: Chance, name: string, leaving: Leaving): FamilyPlan {
  return { name, prompt: sessionScript({ chance, ...leaving }, name, 0) };
}

/** Returns a message that a person or a parent sends to a running session. */
export function messageScript(chance: Chance): string {
  const steps = [`say ${word(chance)}`];
  if (chance.is(0.4)) steps.push(`sleep ${chance.int(20, 300)}`, `say ${word(chance)}`);
  if (chance.is(0.3)) steps.push(`run echo ${word(chance)}`);
  return script(...steps);
}

/**
 * Returns a text that only one step of a storm says, so that it can be looked up in transcript and journal.
 */
export function word(chance: Chance): string {
  return `W-${chance.hex()}`;
}

interface Writing extends Leaving {
  readonly chance: Chance;
}

function sessionScript(writing: Writing, name: string, generation: number): string {
  const { chance } = writing;
  const kids = childNames(chance, name, generation);
  const steps = [`say ${word(chance)}`];
  for (const kid of kids) {
    steps.push(spawnStep({ name: kid, prompt: sessionScript(writing, kid, generation + 1) }, "kid"));
    if (chance.is(0.4)) steps.push(...work(writing));
  }
  const count = chance.int(1, 3);
  for (let at = 0; at < count; at += 1) steps.push(...deed(writing, kids, generation));
  steps.push(...work(writing), `say ${word(chance)}`);
  return script(...steps);
}

function childNames(chance: Chance, name: string, generation: number): string[] {
  if (generation + 1 >= GENERATIONS) return [];
  const count = generation === 0 ? chance.int(1, 2) : chance.int(0, 2);
  return Array.from({ length: count }, (_, at) => `${name}.${at + 1}`);
}

function deed(writing: Writing, kids: readonly string[], generation: number): string[] {
  const { chance } = writing;
  const hasKids = kids.length > 0 ? 1 : 0;
  const kind = chance.weighted({
    work: 4,
    question: 2,
    plan: 1,
    fire: generation > 0 ? 2 : 0,
    tell: 2 * hasKids,
    wait: 3 * hasKids,
    cancel: 0.5 * hasKids,
    leave: 1.5,
  });
  switch (kind) {
    case "work":
      return work(writing);
    case "question": {
      const questions = [{ question: `which one, ${word(chance)}?`, options: ["left", "right"] }];
      return [tool("ask_user_question", { questions, default: "left" })];
    }
    case "plan":
      return [tool("plan_review", { title: `plan ${word(chance)}`, steps: ["one", "two"] })];
    case "fire":
      return [
        tool("fire_trigger", { sessionId: "parent", type: "progress", payload: { n: word(chance) } }),
        ...work(writing),
      ];
    case "tell":
      return [tool("tell_child", { sessionId: chance.pick(kids), message: messageScript(chance) })];
    case "wait":
      return [tool("wait_session", { until: chance.pick(["any", "all"]), timeoutMs: chance.int(0, 3000) })];
    case "cancel":
      return [...work(writing), tool("cancel_session", { sessionId: chance.pick(kids) })];
    default:
      return [leaveBehind(writing)];
  }
}

function work({ chance }: Writing): string[] {
  switch (chance.pick(["sleep", "think", "say", "run"])) {
    case "sleep":
      return [`sleep ${chance.int(20, 500)}`];
    case "think":
      return [`think about ${word(chance)}`, `sleep ${chance.int(10, 150)}`];
    case "say":
      return [`say ${word(chance)}`, `sleep ${chance.int(10, 150)}`];
    default:
      return [`run sleep 0.${chance.int(0, 3)}; echo ${word(chance)}`];
  }
}

/**
 * Returns a step that leaves a process behind. The process is in a new POSIX session and would run for a day.
 */
function leaveBehind({ chance, mark, mayHide }: Writing): string {
  const sleep = `setsid sleep ${86_400 + chance.int(0, 999)}.${mark} >/dev/null 2>&1 &`;
  return mayHide && chance.is(0.6) ? `run (env -i ${sleep}) & echo hid` : `run ${sleep} echo left`;
}
