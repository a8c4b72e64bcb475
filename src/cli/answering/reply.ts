import type { AskOf } from "../../contract/index.ts";
import type { Action, Asked } from "./asked-trigger.ts";
import { answerCommands, askLines, kindOf, needKind, questionsOf } from "./asking.ts";
import type { Call } from "../call.ts";
import { cancelled, type Failure, refused } from "../failure.ts";
import { lineOf, promptOf } from "../terminal/prompt.ts";
import { labelOf } from "../sessions.ts";
import { cleanLine } from "../terminal/text.ts";

export type Reply = Omit<AskOf<"respond">, "id">;

export interface Decision {
  readonly action: Action;
  readonly text: string;
}

/** Returns the decision that a flag names, or null if no flag does. Refuses two such flags. */
export function decisionOf(call: Call): Decision | null {
  const { flags } = call;
  const given: Decision[] = [];
  for (const action of ["approve", "cancel", "allow", "deny", "ack"] as const)
    if (flags.on(action)) given.push({ action, text: "" });
  for (const action of ["edit", "followUp"] as const) {
    const text = flags.text(action);
    if (text !== undefined) given.push({ action, text });
  }
  if (given.length < 2) return given[0] ?? null;
  const names = given.map(({ action }) => `--${FLAGS[action]}`).join(" and ");
  throw refused("wrong_use", `${names} cannot be combined. Choose one.`);
}

/** Builds the answer. On a terminal, asks the person for what the command line leaves out. */
export async function replyTo(
  call: Call,
  asked: Asked,
  { words, decision }: { words: readonly string[]; decision: Decision | null },
): Promise<Reply> {
  const { actions } = asked.trigger;
  if (decision !== null) return decided(call, asked, { words, ...decision });
  const [word = ""] = words;
  if (words.length === 1 && actions.includes(word))
    return decided(call, asked, { words: [], action: word as Action, text: "" });
  if (actions.length > 0) {
    if (!isInteractive(call) || words.length > 0) throw sayWhich(asked, "Choose an answer:");
    return askForAction(call, asked);
  }
  return answerWords(call, asked, words);
}

async function decided(
  call: Call,
  asked: Asked,
  { words, action, text }: Decision & { words: readonly string[] },
): Promise<Reply> {
  const { actions } = asked.trigger;
  if (!actions.includes(action)) {
    const what = WHAT[kindOf(asked.trigger)] ?? "asks a question";
    throw sayWhich(asked, `--${FLAGS[action]} does not fit: ${labelOf(asked.session)} ${what}.`);
  }
  const written = [text, ...words].filter((each) => each !== "").join(" ");
  if (action !== "edit" && action !== "followUp")
    return written === "" ? { action } : { action, response: written };
  const example = `kinfold answer ${labelOf(asked.session)} --${FLAGS[action]} "…"`;
  return { action, response: await promptOf(call, [written], example) };
}

async function answerWords(call: Call, asked: Asked, words: readonly string[]): Promise<Reply> {
  const questions = questionsOf(asked.trigger);
  if (words.length === 0 && isInteractive(call)) return askForWords(call, asked);
  if (questions.length > 1) {
    const ids = questions.map(({ id }) => id);
    const answers = pairsOf(words, ids);
    if (answers !== null) return { answers };
    const text = `${labelOf(asked.session)} asks ${questions.length} things at once. Answer each by its id:`;
    if (words.length > 0) throw sayWhich(asked, text);
  }
  const [example = ""] = answerCommands({ ...asked, kind: "Question" });
  const text = (await promptOf(call, words, example)).trim();
  return { response: optionOf(text, questions[0]?.options ?? []) };
}

/** Reads `dataset=small runs=3`, the form that answers several questions at once. */
function pairsOf(words: readonly string[], ids: readonly string[]): Record<string, string> | null {
  const pairs = words.map((word) => /^([^=]+)=([\s\S]*)$/.exec(word));
  if (!pairs.every((pair) => pair !== null && ids.includes(pair[1] ?? ""))) return null;
  if (!ids.every((id) => pairs.some((pair) => pair?.[1] === id))) return null;
  return Object.fromEntries(pairs.map((pair) => [pair?.[1] ?? "", pair?.[2] ?? ""]));
}

/** Returns the option that equals the text except for case, else the text itself. */
function optionOf(text: string, options: readonly string[]): string {
  return options.find((option) => option.toLowerCase() === text.toLowerCase()) ?? text;
}

async function askForWords(call: Call, asked: Asked): Promise<Reply> {
  const questions = questionsOf(asked.trigger);
  const answers: Record<string, string> = {};
  for (const { id, question, options, isMany } of questions) {
    call.io.note(question.trim().split("\n").map(cleanLine).join("\n"));
    for (const [index, option] of options.entries()) call.io.note(`  ${letter(index)}  ${cleanLine(option)}`);
    const letters = isMany ? "letters separated by commas" : "a letter";
    const hint = options.length === 0 ? "" : ` (${letters}, or your own words)`;
    const line = await lineOf(call, `Answer${hint}: `);
    if (line === null) throw nothing();
    answers[id] = chosen(line, options, isMany);
  }
  const [first] = Object.values(answers);
  return questions.length === 1 ? { response: first ?? "" } : { answers };
}

function chosen(line: string, options: readonly string[], isMany: boolean): string {
  const one = (word: string): string => {
    const index = [...options.keys()].find((each) => letter(each) === word.trim().toLowerCase());
    return index === undefined ? optionOf(word.trim(), options) : (options[index] ?? word);
  };
  return isMany ? line.split(",").map(one).join(", ") : one(line);
}

async function askForAction(call: Call, asked: Asked): Promise<Reply> {
  const { trigger } = asked;
  for (const line of askLines(trigger)) call.io.note(line);
  const choices = trigger.actions.map((action) => FLAGS[action as Action]);
  const offered = choices.map((choice) => `[${choice[0]}]${choice.slice(1)}`);
  const line = await lineOf(call, `${offered.join(", ")}: `);
  const picked = trigger.actions.find((action) => {
    const name = FLAGS[action as Action];
    return line !== null && (line.toLowerCase() === name || line.toLowerCase() === name[0]);
  });
  if (picked === undefined) throw nothing();
  if (picked !== "edit" && picked !== "followUp") return { action: picked as Action };
  const text = await lineOf(call, picked === "edit" ? "What should change? " : "What should it do next? ");
  if (text === null) throw nothing();
  return { action: picked, response: text };
}

function isInteractive(call: Call): boolean {
  return call.io.tty && call.io.stdin.isTTY === true;
}

function nothing(): Failure {
  return cancelled("not_confirmed", "No answer was sent; it still waits for one.");
}

function sayWhich(asked: Asked, sentence: string): Failure {
  const next = answerCommands({ ...asked, kind: needKind(asked.trigger) });
  return refused("bad_answer", sentence, next);
}

function letter(index: number): string {
  return String.fromCodePoint("a".codePointAt(0)! + index);
}

const FLAGS: Readonly<Record<Action, string>> = {
  approve: "approve",
  edit: "edit",
  cancel: "cancel",
  allow: "allow",
  deny: "deny",
  followUp: "follow-up",
  ack: "ack",
};
const WHAT: Readonly<Record<string, string>> = {
  plan_review: "has a plan",
  permission: "asks for permission",
  session_complete: "has finished",
};
