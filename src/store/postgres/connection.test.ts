import assert from "node:assert/strict";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { it } from "node:test";
import { silentLog } from "../../log.ts";
import { addressOf, openPool } from "./connection.ts";
import { isConnectionLoss } from "./failure.ts";
import { withClient } from "./with-client.ts";

/** A message of PostgreSQL's protocol. */
function message(type: string, body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
}

const AUTHENTICATED = message("R", Buffer.alloc(4));
const READY = message("Z", Buffer.from("I"));
const SHUTTING_DOWN = message("E", Buffer.from("SFATAL\0C57P01\0Mterminating connection\0\0"));

it("a server that accepts a connection and shuts down in one packet breaks one statement, not the process", async (t) => {
  const server = createServer((socket) => {
    socket.once("data", () => socket.write(Buffer.concat([AUTHENTICATED, READY, SHUTTING_DOWN])));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const pool = openPool(addressOf(`postgres://kinfold@127.0.0.1:${port}/kinfold`), silentLog);
  t.after(async () => {
    server.close();
    await pool.end();
  });
  await assert.rejects(
    withClient(pool, (client) => client.query("SELECT 1")),
    (error) => isConnectionLoss(error),
  );
});
