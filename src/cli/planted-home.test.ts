import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, it } from "node:test";
import { CliHome } from "./testing/process.ts";

const cli = new CliHome();
after(() => cli.remove());

it("a home that another user wrote into is neither served nor trusted for an address", async () => {
  const heard: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    heard.push(request.headers.authorization);
    response.end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const daemon = { pid: process.pid, url: `http://127.0.0.1:${port}`, startedAt: 1, boot: "b" };
  writeFileSync(join(cli.home, "daemon.json"), JSON.stringify(daemon));
  writeFileSync(join(cli.home, "token"), "kfp_planted\n");
  for (const name of ["daemon.json", "token"]) chmodSync(join(cli.home, name), 0o666);
  chmodSync(cli.home, 0o777);
  try {
    for (const args of [["ls"], ["up", "--port", "0"], ["run", "hello"]]) {
      const { code, err } = await cli.run(args);
      assert.equal(code, 2, args.join(" "));
      assert.match(err, /token: other users could have written it \(mode 666/);
      assert.match(err, /KINFOLD_HOME=/);
    }
    assert.deepEqual(heard, []);
    assert.equal(existsSync(join(cli.home, "kinfold.db")), false);
  } finally {
    server.close();
  }
});
