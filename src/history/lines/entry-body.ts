import type { EntryBody } from "../../contract/index.ts";
import { bounded, cut } from "./text.ts";
import { asList, asObject, asText } from "./value.ts";

/** A tool call in common terms, whatever format it was read from. */
export interface CallFacts {
  readonly callId: string;
  readonly tool: string;
  readonly input: unknown;
  readonly command: string | null;
  readonly path: string | null;
  /** A title for people; the tool's name is shown when it is null. */
  readonly title: string | null;
}

export function callBody(
  { callId, tool, input, command, path, title }: CallFacts,
  textMax: number,
): EntryBody {
  return {
    text: title ?? tool,
    tool,
    callId,
    input: bounded(input, textMax),
    ...(command === null ? {} : { command: cut(command, textMax) }),
    ...(path === null ? {} : { paths: [path] }),
  };
}

/** Builds the result of a call; `call` is null when the call itself was not seen. */
export function resultBody(
  result: { readonly text: string; readonly callId: string; readonly ok: boolean },
  call: { readonly tool: string; readonly command: string | null } | null,
  exitCode: number | null,
): EntryBody {
  return {
    ...result,
    ...(call === null ? {} : { tool: call.tool }),
    ...(call?.command ? { command: call.command } : {}),
    ...(exitCode === null ? {} : { exitCode }),
  };
}

/** Builds a plan from a list of steps. Each step's title is the first of `titleFields` that it has. */
export function planBody(list: unknown, titleFields: readonly string[]): EntryBody & { text: string } {
  const steps = asList(list).flatMap((item) => {
    const step = asObject(item);
    const title = titleFields.map((field) => asText(step?.[field])).find((text) => text !== null);
    return title === undefined || title === null
      ? []
      : [{ title, status: asText(step?.["status"]) ?? "pending" }];
  });
  return { text: steps.map(({ title }) => `- ${title}`).join("\n"), steps: steps.slice(0, STEPS_MAX) };
}

const STEPS_MAX = 200;
