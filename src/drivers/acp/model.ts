import type { AgentConnection } from "./agent-connection.ts";
import type { OpenedSession } from "./open.ts";
import { describeError } from "./failure.ts";
import { isFields } from "./update/tool-call.ts";

export type ModelChoice =
  | { readonly ok: true; readonly model: string | null }
  | { readonly ok: false; readonly problem: string };

/**
 * Selects the model if the agent offers a choice, and returns the model that the agent then reports, perhaps
 * under another name. A rejected model is a problem: the session must not run with another one. An agent that
 * offers no choice is assumed to run the model from its configuration.
 */
export async function selectModel(
  connection: AgentConnection,
  session: OpenedSession,
  wanted: { readonly model: string | null; readonly own: string | null },
): Promise<ModelChoice> {
  const { model } = wanted;
  if (model === null || model === currentModel(session)) return { ok: true, model: currentModel(session) };
  const { sessionId } = session;
  const option = modelOption(session);
  try {
    if (option) {
      const params = { sessionId, configId: option.id, value: model };
      const answer: unknown = await connection.rpc.agent.request("session/set_config_option", params);
      return { ok: true, model: currentModel(answer) ?? model };
    }
    if (oldModels(session)) {
      await connection.rpc.agent.request("session/set_model", { sessionId, modelId: model });
      return { ok: true, model };
    }
  } catch (error) {
    return { ok: false, problem: `${notTaken(model)}: ${describeError(error)}${offer(session)}` };
  }
  if (model === wanted.own) return { ok: true, model };
  return { ok: false, problem: `${notTaken(model)}: it offers no choice of model` };
}

function notTaken(model: string): string {
  return `the agent rejected the model ${model}`;
}

/** How many models a refusal lists; `list_models` returns all. */
const OFFER_MAX = 12;

function offer(session: OpenedSession): string {
  const option = modelOption(session);
  const old = oldModels(session)?.availableModels ?? [];
  const names =
    option?.type === "select"
      ? option.options.flatMap((one) => ("options" in one ? one.options : [one])).map((one) => one.value)
      : old.map((one) => one.modelId);
  if (names.length === 0) return "";
  const more = names.length > OFFER_MAX ? ", …" : "";
  return `; it offers ${names.slice(0, OFFER_MAX).join(", ")}${more}`;
}

function currentModel(session: unknown): string | null {
  if (!isFields(session)) return null;
  const option = modelOption(session as Offering);
  if (option?.type === "select") return option.currentValue;
  return oldModels(session as Offering)?.currentModelId ?? null;
}

type Offering = Pick<OpenedSession, "configOptions">;

function modelOption(session: Offering) {
  return session.configOptions?.find((option) => option.category === "model");
}

interface OldModels {
  readonly currentModelId?: string;
  readonly availableModels?: readonly { readonly modelId: string }[];
}

/** The API before configuration options; Codex and Gemini still use it. */
function oldModels(session: Offering): OldModels | null {
  return (session as { models?: OldModels | null }).models ?? null;
}
