import type { EntryBody } from "../../contract/index.ts";
import { bounded, cut } from "./text.ts";
import { asList, asObject, asText } from "./value.ts";

/** A call of a tool, as every format tells it in its own words. */
export interface CallFacts {
  readonly callId: string;
  readonly tool: string;
  readonly input: unknown;
  readonly command: string | null;
  readonly path: string | null;
  /** What it is about, for people; without one, the tool's name. */
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

/** The result of a call; `call` is null where the call itself was not seen. */
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

/** A plan from a list of steps, each with its title in the first of these fields that it has. */
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
