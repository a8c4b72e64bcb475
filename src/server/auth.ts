import type { IsAgentPeer } from "../system/agent-peer.ts";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { Refusal } from "../contract/refusal.ts";
import type { CallerContext, Gate } from "../operations/port.ts";

/** The Host headers that are accepted. */
export interface HostRule {
  port: number;
  readonly scheme: "http" | "https";
  /** The address that the server listens on; null if it is a wildcard. */
  readonly host: string | null;
  /** Additional names: `name`, or `name:port` behind a proxy. */
  readonly allowHosts: readonly string[];
}

/**
 * Refuses requests that a foreign page could send by DNS rebinding or by a form. Runs before the token is
 * checked. An absolute request target must name our host as well.
 */
export function refuseForeign(incoming: IncomingMessage, rule: HostRule): void {
  const hosts = valuesOf(incoming, "host");
  const host = hosts[0]?.toLowerCase();
  if (hosts.length !== 1 || host === undefined || !allowedHosts(rule).has(host)) throw hostRefused(rule);
  const target = incoming.url ?? "";
  if (!target.startsWith("/")) {
    const authority = /^https?:\/\/([^/?#]*)/i.exec(target)?.[1]?.toLowerCase();
    if (authority !== undefined && authority !== host) throw hostRefused(rule);
  }
  const origins = valuesOf(incoming, "origin");
  if (origins.some((origin) => origin.toLowerCase() !== `${rule.scheme}://${host}`)) {
    throw new Refusal(
      "host_refused",
      "Requests from other sites are refused; open the daemon's own address.",
    );
  }
}

/** Returns the bearer token. A token in the URL is not accepted: URLs end up in histories and logs. */
export function bearerOf(incoming: IncomingMessage): string {
  const values = valuesOf(incoming, "authorization");
  const token =
    values.length === 1 ? /^Bearer +([\x21-\x7e]{1,512})$/i.exec(values[0] ?? "")?.[1] : undefined;
  if (token === undefined) throw unauthorized("No token was sent");
  return token;
}

/** A health check waits this long for the store, then accepts a person's token that it remembers. */
const HEALTH_MS = 250;
const PEOPLE_MAX = 16;

/** Identifies callers. Looks up a socket's process at most once, and not for the token of a session. */
export class Authenticator {
  readonly #gate: Gate;
  readonly #isAgentPeer: IsAgentPeer | undefined;
  readonly #people = new Map<string, CallerContext>();
  readonly #peers = new WeakMap<Socket, Promise<boolean>>();

  constructor(gate: Gate, isAgentPeer: IsAgentPeer | undefined) {
    this.#gate = gate;
    this.#isAgentPeer = isAgentPeer;
  }

  async admit(token: string, socket: Socket): Promise<CallerContext> {
    return this.#admit(await this.#gate.identify(token), token, socket);
  }

  /** If the store is slow, accepts a person's token that was valid before: a health check must be quick. */
  async admitToHealth(token: string, socket: Socket): Promise<CallerContext> {
    const asked = this.#gate.identify(token);
    const known = this.#people.get(token);
    if (known === undefined) return this.#admit(await asked, token, socket);
    const late = Promise.withResolvers<CallerContext>();
    const timer = setTimeout(() => late.resolve(known), HEALTH_MS);
    const found = await Promise.race([asked.catch(() => known), late.promise]);
    clearTimeout(timer);
    return this.#admit(found, token, socket);
  }

  async #admit(caller: CallerContext | null, token: string, socket: Socket): Promise<CallerContext> {
    if (caller === null) {
      this.#people.delete(token);
      throw unauthorized("The token is not valid or was revoked");
    }
    if (caller.kind !== "session" && (await this.#isAgent(socket))) {
      throw new Refusal(
        "caller_is_agent",
        "This is a person's token, but a process of a session sent it. A session uses its own token, through its Kinfold tools.",
      );
    }
    if (caller.kind === "person") this.#remember(token, caller);
    return caller;
  }

  #remember(token: string, caller: CallerContext): void {
    this.#people.delete(token);
    this.#people.set(token, caller);
    const [oldest] = this.#people.keys();
    if (this.#people.size > PEOPLE_MAX && oldest !== undefined) this.#people.delete(oldest);
  }

  #isAgent(socket: Socket): Promise<boolean> {
    const known = this.#peers.get(socket);
    if (known !== undefined) return known;
    if (this.#isAgentPeer === undefined) return Promise.resolve(false);
    const { remotePort, remoteAddress, localPort } = socket;
    // The connection is closed, so its process is unknown. The caller is refused, as an agent would be.
    if (remotePort === undefined || remoteAddress === undefined || localPort === undefined) {
      return Promise.resolve(true);
    }
    const found = this.#isAgentPeer({ remotePort, remoteAddress, localPort });
    this.#peers.set(socket, found);
    return found;
  }
}

function unauthorized(what: string): Refusal {
  return new Refusal(
    "unauthorized",
    `${what}; send the header "Authorization: Bearer <token>" with the token of \`kinfold paths\`.`,
  );
}

function hostRefused(rule: HostRule): Refusal {
  return new Refusal(
    "host_refused",
    `The daemon does not accept this Host header; use ${rule.scheme}://127.0.0.1:${rule.port}, or add the name to allowHosts.`,
  );
}

function allowedHosts(rule: HostRule): Set<string> {
  const port = rule.port;
  const isDefaultPort = port === (rule.scheme === "https" ? 443 : 80);
  const names = ["127.0.0.1", "[::1]", "localhost", ...(rule.host === null ? [] : [rule.host.toLowerCase()])];
  const own = names.flatMap((name) => (isDefaultPort ? [name, `${name}:${port}`] : [`${name}:${port}`]));
  const further = rule.allowHosts
    .map((name) => name.toLowerCase())
    .flatMap((name) => (/:\d+$/.test(name) ? [name] : [name, `${name}:${port}`]));
  return new Set([...own, ...further]);
}

/** Returns a header's values as they were sent; Node's parsed headers hide a second Host. */
function valuesOf(incoming: IncomingMessage, name: string): string[] {
  const raw = incoming.rawHeaders;
  return raw.filter((_, index) => index % 2 === 1 && raw[index - 1]?.toLowerCase() === name);
}
