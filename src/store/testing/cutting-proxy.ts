import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface CuttingProxy {
  readonly port: number;
  /** Cuts the next connection that sends a COMMIT: before the server receives it, or after. */
  cutNextCommit(when: "before" | "after"): void;
  /** Cuts every open connection. */
  cutAll(): void;
  /** Cuts the next connection that sends this text, after the server has received it. */
  cutNext(text: string): void;
  /** While set, new connections get the answer of a server that is starting up. */
  isStarting: boolean;
  /** How many connections the proxy has cut. */
  readonly cuts: number;
  close(): Promise<void>;
}

const COMMIT = Buffer.from("COMMIT\0");
const STARTING = errorResponse("57P03", "the database system is starting up");

function errorResponse(code: string, text: string): Buffer {
  const fields = Buffer.from(`SFATAL\0C${code}\0M${text}\0\0`);
  const head = Buffer.from("E\0\0\0\0");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

/** A proxy between a store and its server that breaks connections at the worst instant. */
export async function cuttingProxy(port: number): Promise<CuttingProxy> {
  let cut: { when: "before" | "after"; at: Buffer } | null = null;
  let isStarting = false;
  let cuts = 0;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    if (isStarting) {
      client.on("error", () => client.destroy());
      client.once("data", () => client.end(STARTING));
      return;
    }
    const upstream = connect(port, "127.0.0.1");
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    upstream.on("data", (bytes) => client.write(bytes));
    client.on("data", (bytes: Buffer) => {
      if (cut === null || !bytes.includes(cut.at)) {
        upstream.write(bytes);
        return;
      }
      cuts += 1;
      if (cut.when === "before") client.destroy();
      else upstream.write(bytes, () => client.destroy());
      cut = null;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    cutNextCommit(when) {
      cut = { when, at: COMMIT };
    },
    cutNext(text) {
      cut = { when: "after", at: Buffer.from(text) };
    },
    get isStarting() {
      return isStarting;
    },
    set isStarting(value) {
      isStarting = value;
    },
    cutAll() {
      cuts += 1;
      for (const socket of sockets) socket.destroy();
    },
    get cuts() {
      return cuts;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
