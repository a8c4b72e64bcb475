import { asList, asObject, asText, type JsonObject } from "../../lines/value.ts";

export interface Content {
  readonly text: string;
  readonly calls: readonly JsonObject[];
  readonly responses: readonly JsonObject[];
}

/** The content may be a string, one part or a list of parts. */
export function readContent(content: unknown): Content {
  if (typeof content === "string") return { text: content, calls: [], responses: [] };
  const parts = (Array.isArray(content) ? asList(content) : [content]).map((part) =>
    typeof part === "string" ? { text: part } : asObject(part),
  );
  const pick = (name: string): JsonObject[] =>
    parts.map((part) => asObject(part?.[name])).filter((found) => found !== null);
  return {
    text: parts.flatMap((part) => textOfPart(part) ?? []).join(""),
    calls: pick("functionCall"),
    responses: pick("functionResponse"),
  };
}

function textOfPart(part: JsonObject | null): string | null {
  if (part === null) return null;
  if (typeof part["text"] === "string") return part["thought"] === true ? null : part["text"];
  const data = asObject(part["inlineData"]) ?? asObject(part["fileData"]);
  if (data === null) return null;
  return `[${asText(data["fileUri"]) ?? asText(data["mimeType"]) ?? "a file"}]`;
}

/** Returns a tool's answer. Gemini CLI writes it as `output` or `error`; other programs may use any form. */
export function responseText(result: unknown): string {
  const { responses, text } = readContent(result);
  const said = responses.flatMap((response) => {
    const body = asObject(response["response"]);
    return asText(body?.["output"]) ?? asText(body?.["error"]) ?? (body === null ? [] : JSON.stringify(body));
  });
  return said.length === 0 ? text : said.join("\n");
}
