import { Refusal } from "../../contract/refusal.ts";
import { agents } from "./health.ts";
import type { Handler } from "../deps.ts";

/** Returns the agents, as the engine detected them, and the profiles of the caller's folder. */
export const models: Handler<"models"> = async (deps, caller, { input }) => {
  const { agents: known } = await agents(deps);
  const wanted = input.agent === undefined ? known : known.filter((agent) => agent.name === input.agent);
  if (wanted.length === 0 && input.agent !== undefined) {
    throw new Refusal(
      "unknown_agent",
      `No agent "${input.agent}" is known. Known: ${known.map((agent) => agent.name).join(", ")}.`,
    );
  }
  const { profiles, problems } = await deps.profiles(caller.self?.cwd ?? null);
  return {
    agents: wanted,
    profiles: profiles.map(({ name, description, from }) => ({ name, description, from })),
    problems: [...problems],
  };
};
