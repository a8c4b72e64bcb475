import type { Answer } from "../contract/index.ts";
import { type Fields, fieldsOf } from "../text/fields.ts";

/** Returns the questions with their options, or the plan, that a vendor's own form shows. */
export function askedInForm(payload: Fields): string {
  const questions = questionsOf(payload);
  if (questions.length > 0) {
    return questions
      .map(({ question, options }) => [question, ...options.map((option) => `- ${option}`)].join("\n"))
      .join("\n\n");
  }
  const steps = listOf(payload["steps"]).map((step) => `- ${plain(step)}`);
  const parts = [plain(payload["title"]), plain(payload["description"]), ...steps];
  return [...new Set(parts)].filter((part) => part !== "").join("\n");
}

/**
 * Returns the answers to the questions. If no question has one, returns the text of the response. For a plan,
 * returns only the verdict, because feedback is a separate message.
 */
export function answeredInForm(
  payload: Fields,
  answer: Pick<Answer, "action" | "response" | "answers">,
): string {
  const questions = questionsOf(payload);
  if (questions.length === 0) return VERDICTS[answer.action ?? ""] ?? plain(answer.action);
  const given = answer.answers ?? {};
  const known = questions.flatMap(({ id, question }) => {
    const value = plain(given[id] ?? given[question]);
    return value === "" ? [] : [questions.length === 1 ? value : `${question}\n${value}`];
  });
  if (known.length > 0) return known.join("\n\n");
  const said = answer.response?.trim() ?? "";
  return said === "" ? Object.values(given).map(plain).join("\n") : said;
}

const VERDICTS: Readonly<Record<string, string>> = {
  approve: "approved the plan",
  edit: "sent the plan back to be changed",
  cancel: "refused the plan",
};

export function questionsOf(payload: Fields): { id: string; question: string; options: string[] }[] {
  return listOf(payload["questions"]).map((each) => {
    const { id, question, options } = fieldsOf(each);
    return { id: plain(id), question: plain(question), options: listOf(options).map(plain) };
  });
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

function plain(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (Array.isArray(value)) return value.map(plain).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
