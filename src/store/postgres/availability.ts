import pg from "pg";
import { asError } from "../../system/error.ts";
import type { Log } from "../../log.ts";
import type { StoreTrouble } from "../problem.ts";
import { clientOptions, type Address } from "./connection.ts";
import { isConnectionLoss } from "./failure.ts";

const BEAT_MS = 5_000;
/** After this long without an answer to a statement, the server is probed. */
const ANSWER_MS = 5_000;
const PROBE_MS = 3_000;
const RETRY_MS = 500;

interface Options {
  readonly address: Address;
  readonly log: Log;
}

/**
 * Knows whether the server answers, so that the daemon can say what it waits for. A lost connection or an
 * unanswered statement only raises a suspicion; a probe on a separate connection decides.
 */
export class Availability {
  readonly #at: Options;
  #trouble: StoreTrouble | null = null;
  #beat: NodeJS.Timeout | null = null;
  #retry: NodeJS.Timeout | null = null;
  #probing = false;
  #looking: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(at: Options) {
    this.#at = at;
  }

  get trouble(): StoreTrouble | null {
    return this.#trouble;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Sends the server a statement every few seconds, because a server that hangs gives no error. */
  watch(pool: pg.Pool): void {
    let isAsking = false;
    this.#beat = setInterval(() => {
      if (isAsking) return;
      isAsking = true;
      const late = setTimeout(() => this.#probeSoon(0), ANSWER_MS);
      late.unref();
      pool
        .query("SELECT 1")
        .catch((error: unknown) => this.failed(error))
        .finally(() => {
          clearTimeout(late);
          isAsking = false;
        });
    }, BEAT_MS);
    this.#beat.unref();
  }

  /** Call it when a statement failed. If the connection was lost, the server is probed. */
  failed(error: unknown): void {
    if (isConnectionLoss(error)) this.#probeSoon(0);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#beat !== null) clearInterval(this.#beat);
    if (this.#retry !== null) clearTimeout(this.#retry);
    await this.#looking;
  }

  #probeSoon(ms: number): void {
    if (this.#probing || this.#isClosed) return;
    this.#probing = true;
    this.#retry = setTimeout(() => {
      this.#looking = this.#probe();
    }, ms);
    this.#retry.unref();
  }

  async #probe(): Promise<void> {
    const failure = await probe(this.#at.address);
    this.#probing = false;
    if (this.#isClosed) return;
    if (failure === null) this.#answered();
    else this.#silent(failure);
  }

  #answered(): void {
    if (this.#trouble === null) return;
    const ms = Date.now() - this.#trouble.since;
    this.#trouble = null;
    this.#at.log.info({ ms, server: this.#at.address.shown }, "PostgreSQL answers again");
  }

  #silent(failure: string): void {
    const text = `PostgreSQL at ${this.#at.address.shown} does not answer (${failure})`;
    if (this.#trouble === null) this.#at.log.warn({ error: failure }, `${text}; waiting for it`);
    this.#trouble = { since: this.#trouble?.since ?? Date.now(), text };
    this.#probeSoon(RETRY_MS);
  }
}

/** Returns null if the server answers on a new connection, else why it does not. */
async function probe(address: Address): Promise<string | null> {
  const client = new pg.Client({
    ...clientOptions(address),
    application_name: "kinfold probe",
    connectionTimeoutMillis: PROBE_MS,
    query_timeout: PROBE_MS,
  });
  let failure: string | null = null;
  const failed = (error: Error): void => {
    failure ??= error.message;
  };
  client.on("error", failed);
  try {
    await client.connect();
    await client.query("SELECT 1");
  } catch (error) {
    failed(asError(error));
  }
  await client.end().catch(failed);
  return failure;
}
