import { text as readAll } from "node:stream/consumers";
import type { Call } from "../call.ts";
import { refused } from "../failure.ts";

/** Joins the words. If the text is `-`, or is empty and stdin is a pipe, reads standard input instead. */
export async function promptOf(call: Call, words: readonly string[], example: string): Promise<string> {
  const written = words.join(" ");
  const fromStdin = written === "-" || (written === "" && isPipe(call));
  const prompt = fromStdin ? await readAll(call.io.stdin) : written;
  if (prompt.trim() !== "") return prompt;
  const text = fromStdin ? "Standard input was empty: there is no text to send." : "The text is missing.";
  const fromFile = `From a file: ${example.replace(/"[^"]*"$/, "- < task.md")}`;
  throw refused("empty_prompt", text, [`Example: ${example}`, ...(example.endsWith('"') ? [fromFile] : [])]);
}

/** Asks a person yes or no. Any answer but yes is no. */
export async function confirm(call: Call, question: string): Promise<boolean> {
  return /^y(es)?$/i.test((await lineOf(call, `${question} [y/N] `)) ?? "");
}

/** Reads one line from a person; null if it is empty or the person left with Ctrl-C or Ctrl-D. */
export async function lineOf(call: Call, question: string): Promise<string | null> {
  const { createInterface } = await import("node:readline/promises");
  const lines = createInterface({ input: call.io.stdin, output: process.stderr });
  const left = new AbortController();
  lines.once("close", () => left.abort());
  try {
    return (await lines.question(question, { signal: left.signal })).trim() || null;
  } catch {
    // The person left, which counts as no answer.
    return null;
  } finally {
    lines.close();
  }
}

/** True if standard input is a pipe or a file, not a terminal and not closed. */
function isPipe(call: Call): boolean {
  return call.io.stdin.isTTY !== true && !call.io.stdin.destroyed;
}
