import type { Answer } from "../../contract/index.ts";
import type { AgentAnswer, AgentQuestion } from "../../drivers/port.ts";

type Answers = (AgentAnswer & { kind: "answer" })["answers"];

/**
 * Assigns an answer to each question of a form: by the question's id or text, else line by line if the
 * response has as many lines as there are questions. Any other response answers the first question.
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
