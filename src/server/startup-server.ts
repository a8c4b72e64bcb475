import type { Server } from "node:http";
import { Refusal } from "../contract/refusal.ts";
import type { ServerOptions } from "./routes.ts";
import { bearerOf, refuseForeign } from "./auth.ts";
import { refusalOf } from "./refusal-response.ts";
import { hostRule, listening, openServer, refuseOpenBind, sendRefusal, urlOf } from "./http.ts";

export interface StartupOptions extends Pick<ServerOptions, "config" | "log"> {
  /** Returns whether the token is the person's. It cannot ask the store, which is not open yet. */
  readonly isPerson: (token: string) => boolean;
  /** Returns what the daemon waits for, as a sentence. */
  readonly reason: () => string;
}

/** Listens at the daemon's address until there is a store, and tells a person what the daemon waits for. */
export async function openStartupServer(
  options: StartupOptions,
): Promise<{ url: string; close(): Promise<void> }> {
  const { config, log } = options;
  refuseOpenBind(config);
  const rule = hostRule(config);
  const server: Server = await openServer(config, (incoming, outgoing) => {
    outgoing.setHeader("connection", "close");
    outgoing.setHeader("retry-after", "1");
    try {
      refuseForeign(incoming, rule);
      if (!options.isPerson(bearerOf(incoming))) throw starting("The daemon is starting.");
      throw starting(`The daemon is starting. ${options.reason()}`);
    } catch (error) {
      sendRefusal(outgoing, refusalOf(error, log));
    }
  });
  rule.port = await listening(server, config);
  return {
    url: urlOf(config, rule.port),
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

function starting(text: string): Refusal {
  return new Refusal("store_busy", `${text} Nothing was changed; ask again in a moment.`);
}
