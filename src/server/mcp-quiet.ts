const SESSIONS_MAX = 4_096;
const QUIET_MAX = 2;

/** Counts a session's waits in a row that brought nothing new: from the third on it polls, and is slowed down. */
export class QuietWaits {
  readonly #count = new Map<string, number>();

  isPolling(sessionId: string): boolean {
    return (this.#count.get(sessionId) ?? 0) >= QUIET_MAX;
  }

  quiet(sessionId: string): void {
    if (this.#count.size >= SESSIONS_MAX) this.#count.clear();
    this.#count.set(sessionId, (this.#count.get(sessionId) ?? 0) + 1);
  }

  clear(sessionId: string): void {
    this.#count.delete(sessionId);
  }
}
