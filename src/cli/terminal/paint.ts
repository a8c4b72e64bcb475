import { styleText } from "node:util";

export type Colour = "amber" | "blue" | "green" | "red" | "soft" | "bold";

export interface Paint {
  readonly on: boolean;
  (colour: Colour | null, text: string): string;
}

/** Uses colours only on a terminal and never if NO_COLOR is set. FORCE_COLOR enables them in a pipe. */
export function paintFor(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv): Paint {
  const on = wanted(stream, env);
  const paint = (colour: Colour | null, text: string) =>
    on && colour !== null && text !== "" ? styleText(STYLES[colour], text, { validateStream: false }) : text;
  return Object.assign(paint, { on });
}

function wanted(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  if (env["NO_COLOR"]) return false;
  if (env["FORCE_COLOR"] && env["FORCE_COLOR"] !== "0") return true;
  return stream.isTTY === true && env["TERM"] !== "dumb";
}

const STYLES = {
  amber: "yellow",
  blue: "blue",
  green: "green",
  red: "red",
  soft: "dim",
  bold: "bold",
} as const satisfies Record<Colour, string>;
