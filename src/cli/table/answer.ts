import type { CommandSpec } from "./table.ts";

export const ANSWER: readonly CommandSpec[] = [
  {
    name: "inbox",
    summary: "List what needs you: questions, plans, permission requests; nearest deadline first.",
    about: "Each item shows exactly what is asked, who asks, the time left, and the command that answers it.",
    examples: [
      ["kinfold inbox", "shows what waits for you"],
      ["kinfold inbox --json | jq -r '.triggers[].id'", "for scripts"],
    ],
  },
  {
    name: "answer",
    summary: "Answer a question, a plan, a permission request, or a child that has finished.",
    about:
      "Answer a question in your own words or with one of its options; answer several questions at once with id=answer for each. On a terminal, without an answer, the command asks you. It reports when the agent has received the answer.",
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
        many: true,
      },
    ],
    options: [
      { flags: "--approve", summary: "a plan: approve it" },
      {
        flags: "--edit <text>",
        summary: "a plan: send it back with this change; the agent submits it again",
      },
      { flags: "--cancel", summary: "a plan: reject it" },
      { flags: "--allow", summary: "a permission request: allow it once" },
      { flags: "--deny", summary: "a permission request: deny it" },
      { flags: "--follow-up <text>", summary: "a finished child: give it more work" },
      { flags: "--ack", summary: "a finished child: close it early" },
    ],
    examples: [
      ["kinfold answer docs small", "one of the options, or your own words"],
      ['kinfold answer release --edit "Two steps are enough"', "sends the plan back"],
      ["kinfold answer perf --allow", "allows what it wants to run, once"],
    ],
    exits: ["done", "refused", "cancelled", "noDaemon"],
  },
];
