import { writeFileSync } from "node:fs";
import path from "node:path";

/** Prompts that the sim agent obeys, line by line. */
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

/** Holds the turn until `openGate`: what a test waits for is an event, never a time. */
export function gate(name: string): string {
  return `run until [ -e ${name} ]; do sleep 0.05; done`;
}

export function openGate(folder: string, name: string): void {
  writeFileSync(path.join(folder, name), "");
}
