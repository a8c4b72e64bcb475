import type { EntryBody } from "../../contract/index.ts";
import { bounded, cut } from "./text.ts";
import { asList, asObject, asText } from "./value.ts";

export interface CallFacts {
  readonly callId: string;
  readonly tool: string;
  readonly input: unknown;
  readonly command: string | null;
  readonly path: string | null;
  /** A title for people; if null, the tool's name is shown. */
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

/** `call` is null when the call itself was not seen. */
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

/** Uses the first of `titleFields` that a step has as the step's title. */
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
