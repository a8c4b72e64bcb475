import type { ServerResponse } from "node:http";
import { Refusal } from "../contract/refusal.ts";
import type { CallerContext, Gate } from "../operations/port.ts";
import type { Log } from "../log.ts";
import type { Admitted } from "./admission.ts";

/**
 * One request and its response. Its signal is aborted when the caller has gone, the token was revoked or the
 * daemon shuts down; in the last two cases the signal's reason is the refusal to answer with.
 */
export class HttpRequest {
  readonly caller: CallerContext;
  readonly token: string;
  readonly #controller = new AbortController();
  readonly #outgoing: ServerResponse;
  readonly #log: Log;
  #whenLost: (() => Promise<void>)[] = [];
  readonly #admitted: Admitted;
  #isLong = false;
  #isClosed = false;

  constructor(options: {
    caller: CallerContext;
    token: string;
    outgoing: ServerResponse;
    log: Log;
    admitted: Admitted;
  }) {
    this.#admitted = options.admitted;
    this.caller = options.caller;
    this.token = options.token;
    this.#outgoing = options.outgoing;
    this.#log = options.log;
    if (options.outgoing.closed) this.#onClose();
    else options.outgoing.once("close", () => this.#onClose());
  }

  /** True for a wait or a feed. These end at once when the daemon shuts down; other requests may finish. */
  get isLong(): boolean {
    return this.#isLong;
  }

  set isLong(isLong: boolean) {
    if (isLong) this.#admitted.becomeLong();
    this.#isLong = isLong;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The refusal that ended this request, or null. */
  get ending(): Refusal | null {
    const reason: unknown = this.signal.aborted ? this.signal.reason : null;
    return reason instanceof Refusal ? reason : null;
  }

  end(refusal: Refusal): void {
    this.#controller.abort(refusal);
  }

  /** Destroys the connection: a normal end would wait forever for a caller that does not read. */
  cut(): void {
    this.#outgoing.destroy();
  }

  /** Calls `run` if the connection closes before the answer was written in full. */
  onLost(run: () => Promise<void>): void {
    if (this.#isClosed) this.#run(run);
    else this.#whenLost.push(run);
  }

  #onClose(): void {
    const isWritten = this.#outgoing.writableFinished;
    const lost = this.#whenLost;
    this.#whenLost = [];
    this.#isClosed = true;
    this.#admitted.leave();
    if (isWritten) return;
    if (!this.signal.aborted) this.#controller.abort(new Error("the caller has gone"));
    for (const run of lost) this.#run(run);
  }

  #run(run: () => Promise<void>): void {
    run().catch((error: unknown) => this.#log.error({ err: error }, "could not take back a lost reply"));
  }
}

export class OpenHttpRequests {
  readonly #gate: Gate;
  readonly #log: Log;
  readonly #open = new Set<HttpRequest>();
  #timer: NodeJS.Timeout | undefined;
  #whenEmpty: (() => void)[] = [];

  constructor(gate: Gate, log: Log) {
    this.#gate = gate;
    this.#log = log;
  }

  add(request: HttpRequest, outgoing: ServerResponse): void {
    this.#open.add(request);
    this.#timer ??= setInterval(() => void this.#endRevoked(), 500).unref();
    outgoing.once("close", () => this.#remove(request));
    if (outgoing.closed) this.#remove(request);
  }

  endLong(refusal: Refusal): void {
    for (const request of this.#open) if (request.isLong) request.end(refusal);
  }

  empty(): Promise<void> {
    if (this.#open.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenEmpty.push(resolve));
  }

  #remove(request: HttpRequest): void {
    this.#open.delete(request);
    if (this.#open.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    for (const resolve of this.#whenEmpty.splice(0)) resolve();
  }

  /** Ends the requests of revoked tokens. Looks up each token once, however many requests use it. */
  async #endRevoked(): Promise<void> {
    const byToken = Map.groupBy([...this.#open], (request) => request.token);
    for (const [token, requests] of byToken) {
      try {
        if ((await this.#gate.identify(token)) !== null) continue;
        const refusal = new Refusal("unauthorized", "The token is no longer valid.");
        for (const request of requests) request.end(refusal);
      } catch (error) {
        this.#log.warn({ err: error }, "could not check a token again; its requests stay open");
      }
    }
  }
}
