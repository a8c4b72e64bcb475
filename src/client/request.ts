import { OPERATIONS, REFUSALS, Refusal } from "../contract/index.ts";
import type { OperationName, OperationSpec, RefusalCode } from "../contract/index.ts";
import { pause } from "./pause.ts";

export interface HttpTarget {
  readonly url: string;
  readonly token: string;
  readonly fetch: typeof globalThis.fetch;
}

/** Thrown if nothing answers at the daemon's address, for example while the daemon restarts. */
export class Unreachable extends Error {
  readonly url: string;

  constructor(url: string, cause: unknown) {
    super(`Nobody answers at ${url}.`, { cause });
    this.name = "Unreachable";
    this.url = url;
  }
}

interface Ask {
  readonly input: object;
  readonly signal?: AbortSignal;
}

/** Maximum number of attempts while the daemon is busy, and maximum pause between two, without jitter. */
const BUSY_TRIES = 6;
const BUSY_PAUSE_MAX_MS = 10_000;

/** Runs one operation. Retries if the daemon refuses it as busy, which is safe: nothing was changed. */
export async function ask(target: HttpTarget, name: OperationName, options: Ask): Promise<unknown> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await askOnce(target, name, options);
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== "busy" || attempt >= BUSY_TRIES) throw error;
      const { retryAfterMs } = error.details;
      const pauseMs = typeof retryAfterMs === "number" ? retryAfterMs : 1_000;
      // Add jitter: clients that were refused together would otherwise return together.
      await pause(Math.min(pauseMs, BUSY_PAUSE_MAX_MS) * (0.5 + Math.random()), options.signal);
      options.signal?.throwIfAborted();
    }
  }
}

/**
 * Puts the fields that the path names into the path. Puts the others into the query of a GET, or into the
 * JSON body of any other method.
 */
async function askOnce(target: HttpTarget, name: OperationName, options: Ask): Promise<unknown> {
  const spec: OperationSpec = OPERATIONS[name];
  if (spec.http === undefined)
    throw new Refusal("not_available", `${name} has no address; only an agent may ask it.`);
  const { path, rest } = fillPath(spec.http.path, options.input);
  const isGet = spec.http.method === "GET";
  const response = await send(target, isGet ? path + queryOf(rest) : path, {
    method: spec.http.method,
    headers: isGet ? {} : { "content-type": "application/json" },
    body: isGet ? undefined : JSON.stringify(rest),
    signal: options.signal,
  });
  return readJson(response, target.url);
}

/** Sends a request with the token. Follows no redirect. Turns every error response into a `Refusal`. */
export async function send(target: HttpTarget, path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await target.fetch(target.url + path, {
      ...init,
      headers: { ...init.headers, authorization: `Bearer ${target.token}` },
      redirect: "error",
      cache: "no-store",
      credentials: "omit",
      referrerPolicy: "no-referrer",
    });
  } catch (error) {
    init.signal?.throwIfAborted();
    throw new Unreachable(target.url, error);
  }
  if (!response.ok) throw await refusalOf(response);
  return response;
}

async function readJson(response: Response, url: string): Promise<unknown> {
  let text: string;
  try {
    text = await response.text();
  } catch (error) {
    throw new Unreachable(url, error);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Refusal("internal", `The answer of ${url} is not JSON; is this Kinfold's address?`, {
      cause: String(error),
    });
  }
}

async function refusalOf(response: Response): Promise<Refusal> {
  const text = await response.text().catch((error: unknown) => String(error));
  const error = errorIn(text);
  if (error === null) {
    return new Refusal("internal", `The answer was HTTP ${response.status} without an explanation.`, {
      status: response.status,
    });
  }
  if (isRefusalCode(error.code)) return new Refusal(error.code, error.message, error.details);
  return new Refusal("internal", error.message, { ...error.details, code: error.code });
}

function errorIn(text: string): { code: string; message: string; details: Record<string, unknown> } | null {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isRecord(body) || !isRecord(body.error)) return null;
  const { code, message, details } = body.error;
  if (typeof code !== "string" || typeof message !== "string") return null;
  return { code, message, details: isRecord(details) ? details : {} };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isRefusalCode(code: string): code is RefusalCode {
  return Object.hasOwn(REFUSALS, code);
}

function fillPath(template: string, input: object): { path: string; rest: Record<string, unknown> } {
  const rest: Record<string, unknown> = { ...input };
  const path = template.replaceAll(/:(\w+)/g, (_, field: string) => {
    const value = rest[field];
    if (typeof value !== "string" || value === "") {
      throw new Refusal("invalid_input", `${field} is missing.`, { field });
    }
    delete rest[field];
    return encodeURIComponent(value);
  });
  return { path, rest };
}

/** Builds a query string, in which names are snake_case. */
export function queryOf(fields: Record<string, unknown>): string {
  const query = new URLSearchParams();
  for (const [field, value] of Object.entries(fields)) {
    if (value === undefined || value === null) continue;
    query.set(
      field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      String(value),
    );
  }
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}
