import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import type { Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { Refusal } from "../contract/index.ts";
import { silentLog } from "../log.ts";
import { fakeOperations, known, person } from "./testing/fake-operations.ts";
import { HttpRequest, OpenHttpRequests } from "./request.ts";

let server: Server;
let arrived = Promise.withResolvers<ServerResponse>();

before(async () => {
  server = createServer((_incoming, outgoing) => arrived.resolve(outgoing)).listen(0, "127.0.0.1");
  await once(server, "listening");
});
after(() => {
  server.closeAllConnections();
  server.close();
});

const admitted = { becomeLong: (): void => undefined, leave: (): void => undefined };

/** Opens a request. Resolves when the server has received the request, before any answer. */
async function openRequest(): Promise<{
  one: HttpRequest;
  outgoing: ServerResponse;
  client: ReturnType<typeof request>;
}> {
  arrived = Promise.withResolvers();
  const client = request({ host: "127.0.0.1", port: (server.address() as AddressInfo).port });
  client.on("error", () => client.destroy());
  client.end();
  const outgoing = await arrived.promise;
  return {
    one: new HttpRequest({ caller: known(person), token: "t", outgoing, log: silentLog, admitted }),
    outgoing,
    client,
  };
}

describe("an answer", () => {
  test("that was written in full is not lost", async () => {
    const { one, outgoing, client } = await openRequest();
    let isLost = false;
    one.onLost(async () => void (isLost = true));
    outgoing.end("whole");
    const [response] = await once(client, "response");
    response.resume();
    await once(response, "end");
    if (!outgoing.closed) await once(outgoing, "close");
    assert.deepEqual([isLost, one.signal.aborted], [false, false]);
  });

  test("whose caller goes away before it is written is lost, and aborts the call", async () => {
    const { one, outgoing, client } = await openRequest();
    const lost = Promise.withResolvers<void>();
    one.onLost(async () => lost.resolve());
    outgoing.write("half");
    await once(client, "response");
    client.destroy();
    await lost.promise;
    assert.equal(one.signal.aborted, true);
    assert.equal(one.ending, null);
  });

  test("that comes after the caller has gone is lost at once", async () => {
    const { one, outgoing, client } = await openRequest();
    client.destroy();
    await once(outgoing, "close");
    const lost = Promise.withResolvers<void>();
    one.onLost(async () => lost.resolve());
    await lost.promise;
    assert.equal(one.signal.aborted, true);
  });

  test("a failure while taking it back is logged and ends nothing", async () => {
    const said = Promise.withResolvers<string>();
    arrived = Promise.withResolvers();
    const client = request({ host: "127.0.0.1", port: (server.address() as AddressInfo).port });
    client.on("error", () => client.destroy());
    client.end();
    const outgoing = await arrived.promise;
    const log = { ...silentLog, error: (_: object, text: string) => said.resolve(text) };
    const one = new HttpRequest({ caller: known(person), token: "t", outgoing, log, admitted });
    one.onLost(() => Promise.reject(new Error("store away")));
    client.destroy();
    assert.match(await said.promise, /could not take back a lost reply/);
  });
});

describe("open requests", () => {
  test("only long ones are ended when the daemon stops, and all are waited for", async () => {
    const open = new OpenHttpRequests(fakeOperations().gate, silentLog);
    const [short, long] = [await openRequest(), await openRequest()];
    long.one.isLong = true;
    for (const { one, outgoing } of [short, long]) open.add(one, outgoing);
    open.endLong(new Refusal("shutting_down", "Bye."));
    assert.deepEqual([short.one.ending, long.one.ending?.code], [null, "shutting_down"]);
    const empty = open.empty();
    for (const { outgoing, client } of [short, long]) {
      outgoing.end();
      const [response] = await once(client, "response");
      response.resume();
    }
    await empty;
    await open.empty();
  });
});
