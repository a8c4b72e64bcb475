import { text as readAll } from "node:stream/consumers";
import type { Call } from "./call.ts";
import { Failure } from "./failure.ts";

/** The words after the command as one text; `-`, or a pipe without words, reads standard input. */
export async function promptOf(call: Call, words: readonly string[], example: string): Promise<string> {
  const written = words.join(" ");
  const fromStdin = written === "-" || (written === "" && isPipe(call));
  const prompt = fromStdin ? await readAll(call.io.stdin) : written;
  if (prompt.trim() !== "") return prompt;
  throw new Failure(
    "refused",
    fromStdin
      ? "Standard input was empty: there is no text to send."
      : "What shall it do? A text is missing.",
    {
      code: "empty_prompt",
      next: [`Example: ${example}`, `From a file: ${example.replace(/"[^"]*"$/, "- < task.md")}`],
    },
  );
}

/** A person's yes or no. Anything but yes is no. */
export async function confirm(call: Call, question: string): Promise<boolean> {
  const { createInterface } = await import("node:readline/promises");
  const lines = createInterface({ input: call.io.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await lines.question(`${question} [y/N] `)).trim());
  } catch {
    // Ctrl-C or Ctrl-D at the question is a no.
    return false;
  } finally {
    lines.close();
  }
}

/** Standard input is a pipe or a file, not a terminal and not nothing. */
function isPipe(call: Call): boolean {
  return call.io.stdin.isTTY !== true && !call.io.stdin.destroyed;
}
