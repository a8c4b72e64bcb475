import { writeFileSync } from "node:fs";
import path from "node:path";

/** Returns a prompt whose lines the sim agent executes. */
export function script(...lines: readonly string[]): string {
  return lines.map((line) => `sim> ${line}`).join("\n");
}

export function tool(name: string, input: object, as: string | null = null): string {
  return `tool ${name} ${JSON.stringify(input)}${as === null ? "" : ` as ${as}`}`;
}

export function spawnStep(
  input: { prompt: string; name?: string } & Record<string, unknown>,
  as: string | null = null,
): string {
  return tool("spawn_session", input, as);
}

/** Returns a step that lasts until `openGate` is called, so that no test depends on a fixed time. */
export function gate(name: string): string {
  return `run until [ -e ${name} ]; do sleep 0.05; done`;
}

export function openGate(folder: string, name: string): void {
  writeFileSync(path.join(folder, name), "");
}
