/**
 * How long a client lets a call block, measured in trials: Codex aborts after 300 s of wall clock, Claude
 * Code moves a call to the background after 120 s, OpenCode gives up after 60 s without progress, Gemini
 * after 600 s. An unknown client may be any MCP TypeScript client, which gives up after 60 s.
 */
const CAPS: readonly {
  readonly name: RegExp;
  readonly capMs: number;
  readonly capWithProgressMs?: number;
}[] = [
  { name: /^kinfold-sim\b/, capMs: 600_000 },
  { name: /^codex/, capMs: 280_000 },
  { name: /^claude/, capMs: 110_000 },
  { name: /^opencode/, capMs: 45_000, capWithProgressMs: 280_000 },
  { name: /^gemini/, capMs: 570_000 },
];
const UNKNOWN_CAP_MS = 45_000;

export function waitCapMs(clientName: string | null, hasProgress: boolean): number {
  const known = CAPS.find(({ name }) => name.test(clientName?.toLowerCase() ?? ""));
  if (known === undefined) return UNKNOWN_CAP_MS;
  return hasProgress ? (known.capWithProgressMs ?? known.capMs) : known.capMs;
}
