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
