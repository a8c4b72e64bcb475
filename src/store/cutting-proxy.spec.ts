import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface CuttingProxy {
  readonly port: number;
  /** Cuts the next connection that sends a COMMIT: before the server has it, or after. */
  cutNextCommit(when: "before" | "after"): void;
  /** Cuts every connection there is. */
  cutAll(): void;
  /** How often it has cut. */
  readonly cuts: number;
  close(): Promise<void>;
}

const COMMIT = Buffer.from("COMMIT\0");

/** Stands between a store and its server, and breaks the connection at the worst instant. */
export async function cuttingProxy(port: number): Promise<CuttingProxy> {
  let cut: "before" | "after" | null = null;
  let cuts = 0;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
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
      if (cut === null || !bytes.includes(COMMIT)) {
        upstream.write(bytes);
        return;
      }
      cuts += 1;
      if (cut === "before") client.destroy();
      else upstream.write(bytes, () => client.destroy());
      cut = null;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    cutNextCommit(when) {
      cut = when;
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
