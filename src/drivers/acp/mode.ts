import type { AgentConnection } from "./agent-connection.ts";
import type { OpenedSession } from "./open.ts";
import { describeError } from "./failure.ts";

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
  const { current, offered, configId } = modesOf(session);
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

interface Modes {
  readonly current: string | null;
  readonly offered: readonly string[];
  /** Null if the agent uses ACP's older mode API. */
  readonly configId: string | null;
}

function modesOf(session: OpenedSession): Modes {
  const { modes } = session;
  if (modes) {
    return {
      current: modes.currentModeId,
      offered: modes.availableModes.map((mode) => mode.id),
      configId: null,
    };
  }
  const option = session.configOptions?.find((one) => one.category === "mode");
  if (option?.type !== "select") return { current: null, offered: [], configId: null };
  const values = option.options.flatMap((one) => ("options" in one ? one.options : [one]));
  return { current: option.currentValue, offered: values.map((one) => one.value), configId: option.id };
}
