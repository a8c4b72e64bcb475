import { flat, list, message, newId, pieces, USED } from "./request.ts";
import type { Body, JsonSchema, ModelAnswer, ModelMessage, Wire } from "./request.ts";

/** Translates requests and answers of Gemini's `generateContent` API. */
export const gemini: Wire = {
  parse(body, url) {
    const [, model = "", method] = /models\/([^:]+):(\w+)/.exec(url.pathname) ?? [];
    const system = body["systemInstruction"] as Body | undefined;
    const config = (body["generationConfig"] ?? {}) as Record<string, JsonSchema | undefined>;
    return {
      model,
      isStream: method === "streamGenerateContent",
      system: flat(system?.["parts"] ?? system),
      messages: list(body["contents"]).map(messageOf),
      tools: list(body["tools"])
        .flatMap((tool) => list(tool["functionDeclarations"]))
        .map((tool) => ({ name: flat(tool["name"]) })),
      schema: config["responseJsonSchema"] ?? config["responseSchema"] ?? null,
    };
  },
  whole: (answer, model) =>
    frame([...(answer.text === "" ? [] : [{ text: answer.text }]), ...callsOf(answer)], model, true),
  stream(answer, model) {
    const calls = callsOf(answer);
    const chunks: unknown[][] = pieces(answer.text).map((text) => [{ text }]);
    if (calls.length > 0) chunks.push(calls);
    if (chunks.length === 0) chunks.push([{ text: "" }]);
    return chunks.map((parts, index) => [null, frame(parts, model, index === chunks.length - 1)]);
  },
  error: (status, text) => ({
    error: { code: status, status: ERRORS[status] ?? "INTERNAL", message: text },
  }),
};

const ERRORS: Readonly<Record<number, string>> = { 400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED" };

function messageOf(from: Body): ModelMessage {
  const to = message(from["role"] === "model" ? "assistant" : "user");
  const texts: string[] = [];
  for (const part of list(from["parts"])) {
    const call = part["functionCall"] as Body | undefined;
    const result = part["functionResponse"] as { response?: Body } | undefined;
    if (call) to.calls.push({ name: flat(call["name"]), input: call["args"] });
    else if (result) to.results.push({ text: flat(result.response?.["output"] ?? result.response) });
    else if (typeof part["text"] === "string" && part["thought"] !== true) texts.push(part["text"]);
  }
  to.text = texts.join("\n");
  return to;
}

function callsOf(answer: ModelAnswer): unknown[] {
  return answer.calls.map(({ tool, input }) => ({
    functionCall: { id: newId("fc_"), name: tool.name, args: input },
  }));
}

function frame(parts: readonly unknown[], model: string, isLast: boolean): unknown {
  const usageMetadata = {
    promptTokenCount: USED.input,
    candidatesTokenCount: USED.output,
    totalTokenCount: USED.input + USED.output,
  };
  return {
    candidates: [
      { content: { role: "model", parts }, index: 0, ...(isLast ? { finishReason: "STOP" } : {}) },
    ],
    modelVersion: model,
    ...(isLast ? { usageMetadata } : {}),
  };
}
