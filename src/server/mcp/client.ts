/**
 * How long a client lets a call block, from reference trials: Codex cuts at 300 s of wall clock,
 * Claude Code moves a call to the background at 120 s, OpenCode gives up after 60 s of silence
 * unless it gets progress, Gemini after 600 s. An unknown client may be any MCP TypeScript client,
 * which gives up after 60 s.
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

const NAMES_MAX = 4_096;

/**
 * The names clients gave in `initialize`. Requests of the older protocol eras do not repeat them,
 * and no connection is kept between requests, so they are remembered by token.
 */
export class ClientNames {
  readonly #names = new Map<string, string>();

  set(token: string, name: string): void {
    this.#names.delete(token);
    this.#names.set(token, name.slice(0, 100));
    const oldest = this.#names.size > NAMES_MAX ? this.#names.keys().next().value : undefined;
    if (oldest !== undefined) this.#names.delete(oldest);
  }

  get(token: string): string | null {
    return this.#names.get(token) ?? null;
  }
}

type RequestId = string | number;

interface Flight {
  readonly requestId: RequestId;
  readonly controller: AbortController;
}

/** Tool calls that run now, by token: a cancel comes as a request of its own. */
export class CallsInFlight {
  readonly #byToken = new Map<string, Set<Flight>>();

  enter(token: string, requestId: RequestId): { signal: AbortSignal; leave: () => void } {
    const flight: Flight = { requestId, controller: new AbortController() };
    const flights = this.#byToken.get(token) ?? new Set<Flight>();
    this.#byToken.set(token, flights.add(flight));
    const leave = (): void => {
      flights.delete(flight);
      if (flights.size === 0 && this.#byToken.get(token) === flights) this.#byToken.delete(token);
    };
    return { signal: flight.controller.signal, leave };
  }

  /** Two clients may hold the same token and number alike; then nobody's call is guessed at. */
  cancel(token: string, requestId: RequestId): void {
    const meant = [...(this.#byToken.get(token) ?? [])].filter((flight) => flight.requestId === requestId);
    if (meant.length === 1) meant[0]?.controller.abort(new Error("the client cancelled the call"));
  }
}
