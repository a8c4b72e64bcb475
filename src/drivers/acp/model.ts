import type { AgentConnection } from "./agent-connection.ts";
import type { OpenedSession } from "./open.ts";
import { describeError } from "./failure.ts";

/**
 * Asks for a model where the agent offers a choice, in the way of its generation of ACP.
 * Resolves to a notice where it did not get it, and never ends the session for it.
 */
export async function selectModel(
  connection: AgentConnection,
  session: OpenedSession,
  wanted: string | null,
): Promise<string | null> {
  if (wanted === null || wanted === currentModel(session)) return null;
  const { sessionId } = session;
  const option = modelOption(session);
  try {
    if (option) {
      const params = { sessionId, configId: option.id, value: wanted };
      await connection.rpc.agent.request("session/set_config_option", params);
      return null;
    }
    if (oldModels(session)) {
      await connection.rpc.agent.request("session/set_model", { sessionId, modelId: wanted });
      return null;
    }
    return `the agent offers no choice of model; ${wanted} was asked for`;
  } catch (error) {
    return `the agent did not take the model ${wanted}: ${describeError(error)}`;
  }
}

export function currentModel(session: OpenedSession): string | null {
  const option = modelOption(session);
  if (option?.type === "select") return option.currentValue;
  return oldModels(session)?.currentModelId ?? null;
}

function modelOption(session: OpenedSession) {
  return session.configOptions?.find((option) => option.category === "model");
}

/** The form before configuration options, which Codex and Gemini still use. */
function oldModels(session: OpenedSession): { currentModelId?: string } | null {
  return (session as { models?: { currentModelId?: string } | null }).models ?? null;
}
