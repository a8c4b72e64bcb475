import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/** The system draws ports for outgoing connections and for port 0 from above this range. */
const [FIRST, LAST] = [20_000, 32_000];

/**
 * Returns a free port of 127.0.0.1 that a test may close and open again. Ports that the system draws are
 * unsuitable: while one is closed, any other program may be given it.
 */
export async function keptPort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, "127.0.0.1", resolve);
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    return false;
  }
  await new Promise((resolve) => server.close(resolve));
  return true;
}
