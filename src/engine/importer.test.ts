import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLog } from "../log.ts";
import { openEngine } from "./testing/engine.ts";
import { Importer } from "./importer.ts";

test("an import that fails with the store is logged and does not end the daemon", async (t) => {
  const { family, deps } = await openEngine(t);
  const said: string[] = [];
  const done = Promise.withResolvers<void>();
  const log = {
    ...silentLog,
    error: (_: object, text: string) => said.push(text),
    warn: (_: object, text: string) => {
      said.push(text);
      done.resolve();
    },
  };
  const place = { home: "/nonexistent", env: {} };
  const importer = new Importer({ ...deps, log }, place);
  await family.store.close();
  await importer.run();
  await done.promise;
  await importer.stop();
  assert.deepEqual(said, [
    "the thread that reads agents' files has failed",
    "the failure of an import could not be published",
  ]);
});
