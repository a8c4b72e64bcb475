import type { Answer } from "../../contract/index.ts";
import type { AgentAnswer, AgentQuestion } from "../../drivers/port.ts";

type Answers = (AgentAnswer & { kind: "answer" })["answers"];

/**
 * What was answered to each question of a form: by its id or its words, else in words, a line for each
 * where there are as many. What cannot be told apart answers the first.
 */
export function answersTo(
  questions: readonly AgentQuestion[],
  answer: Pick<Answer, "response" | "answers">,
): Answers {
  const given = answer.answers ?? {};
  const found = questions.flatMap(({ id, text }) => {
    const value = plain(given[id] ?? given[text]);
    return value === null ? [] : [[id, value] as const];
  });
  if (found.length > 0) return Object.fromEntries(found);
  const only = Object.values(given).map(plain);
  const said = answer.response?.trim() ?? "";
  const inWords = said === "" ? only.filter((one) => one !== null) : linesOf(said, questions.length);
  return Object.fromEntries(
    questions.flatMap(({ id }, index) => {
      const value = inWords[index];
      return value === undefined ? [] : [[id, value] as const];
    }),
  );
}

function linesOf(text: string, count: number): string[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  if (count === 1 || lines.length !== count) return [text];
  return lines.map((line) => line.replace(/^\s*(?:q?\d+[.):]|[-*])\s+/i, "").trim());
}

function plain(value: unknown): string | string[] | null {
  if (value === undefined || value === null) return null;
  if (Array.isArray(value)) return value.map(String);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
