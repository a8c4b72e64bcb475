import { describeError } from "./failure.ts";
import type { AgentConnection } from "./agent-connection.ts";
import { fieldsOf } from "../../text/fields.ts";
import type { OpenedSession } from "./open.ts";

/**
 * Selects the first of these modes that the agent offers. Returns a problem if the agent offers none or
 * rejects the mode: a session must not run in a looser mode than requested.
 */
export async function selectMode(
  connection: AgentConnection,
  session: OpenedSession,
  wanted: readonly string[],
): Promise<string | null> {
  if (wanted.length === 0) return null;
  const { current, offered, configId } = modeOffer(session) ?? NO_OFFER;
  const mode = wanted.find((one) => offered.includes(one));
  if (mode === undefined) {
    return `the agent offers none of the modes ${wanted.join(", ")}, only: ${offered.join(", ") || "none"}`;
  }
  if (mode === current) return null;
  const { sessionId } = session;
  try {
    if (configId === null) {
      await connection.rpc.agent.request("session/set_mode", { sessionId, modeId: mode });
    } else {
      await connection.rpc.agent.request("session/set_config_option", { sessionId, configId, value: mode });
    }
    return null;
  } catch (error) {
    return `the agent rejected the mode ${mode}: ${describeError(error)}`;
  }
}

type ModelChoice =
  | { readonly ok: true; readonly model: string | null }
  | { readonly ok: false; readonly problem: string };

/**
 * Selects the model if the agent offers a choice, and returns the model that the agent then reports, perhaps
 * under another name. A rejected model is a problem: the session must not run with another one. If the agent
 * offers no choice, only `own`, the model from its configuration, is accepted.
 */
export async function selectModel(
  connection: AgentConnection,
  session: OpenedSession,
  { model, own }: { readonly model: string | null; readonly own: string | null },
): Promise<ModelChoice> {
  const offer = modelOffer(session);
  if (model === null || model === offer?.current) return { ok: true, model: offer?.current ?? null };
  const rejected = `the agent rejected the model ${model}`;
  if (offer === null) {
    if (model === own) return { ok: true, model };
    return { ok: false, problem: `${rejected}: it offers no choice of model` };
  }
  const { sessionId } = session;
  try {
    if (offer.configId === null) {
      await connection.rpc.agent.request("session/set_model", { sessionId, modelId: model });
      return { ok: true, model };
    }
    const params = { sessionId, configId: offer.configId, value: model };
    const answer: unknown = await connection.rpc.agent.request("session/set_config_option", params);
    return { ok: true, model: modelOffer(fieldsOf(answer))?.current ?? model };
  } catch (error) {
    return { ok: false, problem: `${rejected}: ${describeError(error)}${listed(offer.offered)}` };
  }
}

/** How many models a refusal lists; `list_models` returns all. */
const LISTED_MAX = 12;

function listed(names: readonly string[]): string {
  if (names.length === 0) return "";
  const more = names.length > LISTED_MAX ? ", …" : "";
  return `; it offers ${names.slice(0, LISTED_MAX).join(", ")}${more}`;
}

interface Offer {
  readonly current: string | null;
  readonly offered: readonly string[];
  /** Null if the agent uses ACP's older API, which has no configuration options. */
  readonly configId: string | null;
}

const NO_OFFER: Offer = { current: null, offered: [], configId: null };

type Offering = Pick<OpenedSession, "configOptions" | "modes">;

function modeOffer(session: Offering): Offer | null {
  const { modes } = session;
  if (!modes) return configOffer(session, "mode");
  return { current: modes.currentModeId, offered: modes.availableModes.map(({ id }) => id), configId: null };
}

interface OldModels {
  readonly currentModelId?: string;
  readonly availableModels?: readonly { readonly modelId: string }[];
}

/** Codex and Gemini still use ACP's older API, in which the session has `models`. */
function modelOffer(session: Offering): Offer | null {
  const { models } = session as { models?: OldModels | null };
  const config = configOffer(session, "model");
  if (config !== null || !models) return config;
  const offered = (models.availableModels ?? []).map(({ modelId }) => modelId);
  return { current: models.currentModelId ?? null, offered, configId: null };
}

function configOffer(session: Offering, category: "mode" | "model"): Offer | null {
  const option = session.configOptions?.find((one) => one.category === category);
  if (option?.type !== "select") return null;
  const values = option.options.flatMap((one) => ("options" in one ? one.options : [one]));
  return { current: option.currentValue, offered: values.map(({ value }) => value), configId: option.id };
}
