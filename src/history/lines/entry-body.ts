import type { EntryBody } from "../../contract/index.ts";
import type { HistoryEntry, SessionFacts } from "../port.ts";
import type { Fold } from "./row-reader.ts";
import { bounded, cut } from "./text.ts";
import { asList, asObject, asText, firstText, type JsonObject } from "./value.ts";

export type NewEntry = Pick<HistoryEntry, "author" | "kind" | "body">;

/** Adds an entry and cuts its text to `textMax`. An entry without a time gets the session's latest time. */
export function pushEntry(
  { entries, textMax }: Pick<Fold<unknown>, "entries" | "textMax">,
  { isSubagent, lastAt, createdAt }: SessionFacts,
  entry: NewEntry & Pick<HistoryEntry, "ref" | "replaces"> & { inlineId?: string | null; at: number | null },
): void {
  const body = { ...entry.body, text: cut(entry.body.text, textMax) };
  entries.push({ inlineId: null, ...entry, body, isSubagent, at: entry.at ?? lastAt ?? createdAt ?? 0 });
}

export function said(author: HistoryEntry["author"], text: string): NewEntry {
  return { author, kind: "text", body: { text } };
}

export function thought(text: string): NewEntry {
  return { author: "agent", kind: "thought", body: { text } };
}

/** An entry for text that the agent's program itself wrote. */
export function noticed(text: string, ok?: boolean): NewEntry {
  return { author: "agent", kind: "notice", body: { text, ...(ok === undefined ? {} : { ok }) } };
}

/** A sub-agent's report to the session that started it. */
export function reported(text: string): NewEntry {
  return { author: "session", kind: "callback", body: { text } };
}

export function planned(body: EntryBody): NewEntry {
  return { author: "agent", kind: "plan", body };
}

/**
 * Returns the text of content that is a string or a list of blocks. For a block without text, such as an
 * image, `placeholderOf` returns the text to use.
 */
export function textOfBlocks(
  content: unknown,
  placeholderOf: (block: JsonObject, type: string | null) => string | null,
): string {
  if (typeof content === "string") return content;
  const texts = asList(content).map((item) => {
    const block = asObject(item);
    if (block === null) return typeof item === "string" ? item : null;
    return typeof block["text"] === "string" ? block["text"] : placeholderOf(block, asText(block["type"]));
  });
  return texts.filter((text) => text !== null).join("\n");
}

interface CallFacts {
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

/** A step's title is the first of `titleFields` that has a text. A step without a title is left out. */
export function planBody(list: unknown, titleFields: readonly string[]): EntryBody & { text: string } {
  const steps = asList(list).flatMap((item) => {
    const step = asObject(item);
    const title = firstText(step, ...titleFields);
    return title === null ? [] : [{ title, status: asText(step?.["status"]) ?? "pending" }];
  });
  return { text: steps.map(({ title }) => `- ${title}`).join("\n"), steps: steps.slice(0, STEPS_MAX) };
}

const STEPS_MAX = 200;
