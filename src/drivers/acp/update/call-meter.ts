import type { CallUsage } from "../dialect.ts";

type Count = Omit<CallUsage, "id">;

/** Adds up the model calls of one prompt. */
export class CallMeter {
  readonly #calls = new Map<string, Count>();
  #newest: CallUsage | null = null;

  reset(): void {
    this.#calls.clear();
    this.#newest = null;
  }

  call(call: CallUsage): void {
    this.#newest = call;
    this.#calls.set(call.id, larger(this.#calls.get(call.id), call));
  }

  /**
   * Computes the output of the newest call from `tokens`, the size of the context after that call: what is
   * neither input nor cached is output. Returns false if no call was reported yet.
   */
  context(tokens: number): boolean {
    const call = this.#newest;
    if (call === null) return false;
    const outputTokens = tokens - call.inputTokens - call.cachedTokens;
    this.#calls.set(call.id, larger(this.#calls.get(call.id), { ...call, outputTokens }));
    return true;
  }

  total(): Count {
    const total = { inputTokens: 0, cachedTokens: 0, outputTokens: 0 };
    for (const call of this.#calls.values()) {
      total.inputTokens += call.inputTokens;
      total.cachedTokens += call.cachedTokens;
      total.outputTokens += call.outputTokens;
    }
    return total;
  }
}

function larger(before: Count | undefined, now: Count): Count {
  return {
    inputTokens: Math.max(before?.inputTokens ?? 0, now.inputTokens),
    cachedTokens: Math.max(before?.cachedTokens ?? 0, now.cachedTokens),
    outputTokens: Math.max(before?.outputTokens ?? 0, now.outputTokens),
  };
}
