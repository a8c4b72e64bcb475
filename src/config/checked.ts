import type { Loaded } from "./load.ts";

export type Checked = Pick<Loaded, "config" | "problems">;

const NAME = "KINFOLD_CHECKED";

/**
 * For the environment of a daemon that is about to start: who starts it has read and checked the
 * configuration, so that the daemon need not load every schema for it.
 */
export function handOver({ config, problems }: Checked): Record<string, string> {
  return { [NAME]: JSON.stringify({ config, problems }) };
}

/** What was handed over, or null. Taken out of the environment, where nothing else shall find it. */
export function takeChecked(env: Record<string, string | undefined>): Checked | null {
  const text = env[NAME];
  delete env[NAME];
  return text === undefined ? null : (JSON.parse(text) as Checked);
}
