export type Colour = "amber" | "blue" | "green" | "red" | "soft" | "bold";

export interface Paint {
  readonly on: boolean;
  (colour: Colour | null, text: string): string;
}

/** Colours on a terminal only, and never against NO_COLOR. FORCE_COLOR asks for them in a pipe. */
export function paintFor(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv): Paint {
  const on = wanted(stream, env);
  const paint = (colour: Colour | null, text: string) =>
    on && colour !== null && text !== "" ? `\u001b[${CODES[colour]}m${text}\u001b[0m` : text;
  return Object.assign(paint, { on });
}

function wanted(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  if (env["NO_COLOR"]) return false;
  if (env["FORCE_COLOR"] && env["FORCE_COLOR"] !== "0") return true;
  return stream.isTTY === true && env["TERM"] !== "dumb";
}

const CODES: Record<Colour, string> = {
  amber: "33",
  blue: "34",
  green: "32",
  red: "31",
  soft: "2",
  bold: "1",
};
