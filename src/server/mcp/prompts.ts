import type { GetPromptResult, Prompt } from "@modelcontextprotocol/server";
import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { nearest } from "../../text/nearest.ts";

interface Ready {
  readonly title: string;
  readonly description: string;
  readonly arguments: readonly { name: string; description: string; required?: true }[];
  readonly text: (given: Readonly<Record<string, string>>) => string;
}

/** Prompts for a person, shown as slash commands. Until used, they add nothing to the agent's context. */
const PROMPTS: Readonly<Record<string, Ready>> = {
  review: {
    title: "Review by another agent",
    description: "Have another agent review your changes, and go on meanwhile.",
    arguments: [
      { name: "what", description: "what to review; default: the uncommitted changes" },
      { name: "agent", description: "which agent reviews; default: another than yours, if there is one" },
    ],
    text: ({ what, agent }) =>
      [
        `Have ${what ?? "my uncommitted changes"} reviewed by another coding agent.`,
        `Call spawn_session with profile "reviewer", name "review", permission "read-only" and ${agentWords(agent)}. In the prompt say what was changed and why, in which folder, and that you want bugs first: file, line, what goes wrong and how to see it.`,
        "Go on with your other work meanwhile. When the review comes back, check each finding yourself before you tell me about it: what is right, what is not, what you would change.",
      ].join("\n"),
  },
  race: {
    title: "Race several agents",
    description: "Give one task to several agents at once, compare, keep the best.",
    arguments: [
      { name: "task", description: "what each of them shall do", required: true },
      { name: "agents", description: "which agents, with commas between; default: two of those installed" },
    ],
    text: ({ task, agents }) =>
      [
        `Let several coding agents race on this task: ${task}`,
        `${agents === undefined ? "Ask list_models which agents are installed and take two of them" : `Take these agents: ${agents}`}. Call spawn_session once for each, with the same self-contained prompt, a name of its own, and permission "read-only" unless each has its own workspace: two that write into the same files would spoil the race.`,
        "When all have answered, compare the answers by evidence (get_session shows what each really did), tell me which is best and why, and carry on with that one. Do not take anybody's word for a test that passes: run it.",
      ].join("\n"),
  },
  explore: {
    title: "Explore with several agents",
    description: "Answer a question about this project by looking in several places at once.",
    arguments: [
      { name: "question", description: "what you want to know", required: true },
      { name: "where", description: "the folder to look in; default: this one" },
    ],
    text: ({ question, where }) =>
      [
        `Find this out${where === undefined ? "" : ` in ${where}`}: ${question}`,
        'Split it into two to four parts that can be looked at independently. Call subagent with one task for each, profile "explorer", mode "parallel"; each task is self-contained and asks for file names with lines as evidence.',
        "Then put the parts together, look up yourself what contradicts, and answer me in a few sentences with the places that prove it.",
      ].join("\n"),
  },
  family: {
    title: "Your family",
    description: "What your child sessions do, what waits for you, what it has cost.",
    arguments: [],
    text: () =>
      [
        "Call list_sessions and tell me in a few lines: who is at work on what, who has finished and with what result, who waits for an answer, and what it has cost so far.",
        "Answer what you can answer yourself with respond_to_trigger; ask me about the rest. Do not start anything new.",
      ].join("\n"),
  },
};

export function listPrompts(): Prompt[] {
  return Object.entries(PROMPTS).map(([name, { title, description, arguments: args }]) => ({
    name,
    title,
    description,
    ...(args.length > 0 && { arguments: args.map((each) => ({ ...each })) }),
  }));
}

export function getPrompt(params: {
  readonly name: string;
  readonly arguments?: Readonly<Record<string, string>> | undefined;
}): GetPromptResult {
  const ready = Object.hasOwn(PROMPTS, params.name) ? PROMPTS[params.name] : undefined;
  if (ready === undefined) throw unknown(params.name);
  const given = trimmed(params.arguments ?? {});
  for (const { name, description, required } of ready.arguments) {
    if (required && given[name] === undefined) throw invalid(`"${name}" is missing: ${description}.`);
  }
  const text = ready.text(given);
  return { description: ready.description, messages: [{ role: "user", content: { type: "text", text } }] };
}

function agentWords(agent: string | undefined): string {
  return agent === undefined
    ? "an agent other than yourself, if list_models shows one that is signed in"
    : `agent "${agent}"`;
}

function trimmed(given: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(given).map(([name, value]) => [name, value.trim()] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== ""));
}

function unknown(name: string): ProtocolError {
  const names = Object.keys(PROMPTS);
  const [near] = nearest(name, names, 1);
  return invalid(
    `There is no such prompt.${near === undefined ? "" : ` Did you mean ${near}?`} Allowed: ${names.join(", ")}.`,
  );
}

function invalid(message: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message);
}
