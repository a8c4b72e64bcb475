import type { CommandRow } from "./table.ts";

/** Commands that answer what waits for a person. */
export const ANSWER: readonly CommandRow[] = [
  {
    name: "inbox",
    summary: "What needs you: questions, plans, permissions; nearest deadline first.",
    about: "Each with the exact ask, who asks, the time left, and the command that answers it.",
    args: [],
    options: [],
    examples: [
      ["kinfold inbox", "what waits for you"],
      ["kinfold inbox --json | jq -r '.triggers[].id'", "for scripts"],
    ],
    exits: ["done", "refused", "noDaemon"],
  },
  {
    name: "answer",
    summary: "Answer a question, a plan or a permission request; or a child that has finished.",
    about:
      "A question takes words or one of its options; several questions at once take id=answer for each. On a terminal, without words, it asks you. It says when the agent has the answer.",
    args: [
      {
        name: "asked",
        summary: "the session that asks, or the id of what it asks",
        required: true,
        completes: "session",
      },
      {
        name: "answer",
        summary: "the answer in words; - reads it from standard input",
        required: false,
        many: true,
      },
    ],
    options: [
      { flags: "--approve", summary: "a plan: go on with it" },
      { flags: "--edit <text>", summary: "a plan: what to change; it is submitted again" },
      { flags: "--cancel", summary: "a plan: do not do it" },
      { flags: "--allow", summary: "a permission: this once" },
      { flags: "--deny", summary: "a permission: no" },
      { flags: "--follow-up <text>", summary: "a child that has finished: more work for it" },
      { flags: "--ack", summary: "a child that has finished: close it early" },
    ],
    examples: [
      ["kinfold answer docs small", "one of the options, or your own words"],
      ['kinfold answer release --edit "Two steps are enough"', "sends the plan back"],
      ["kinfold answer perf --allow", "what it wants to run, once"],
    ],
    exits: ["done", "refused", "cancelled", "noDaemon"],
  },
];
