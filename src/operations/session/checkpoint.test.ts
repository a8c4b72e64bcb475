import assert from "node:assert/strict";
import { it } from "node:test";
import { openWorld, PERSON } from "../testing/random-trees.ts";

it("the name that is advised for a constraint about a secret is taken, and its text can be read", async () => {
  const world = await openWorld();
  try {
    const { session } = await world.ask("create", PERSON, { prompt: "work", cwd: world.folder, name: "r" });
    for (const name of ["password", "api-secret"]) {
      const text = "never print it";
      const save = (named: string) => ({ id: session.id, summary: "s", constraints: { [named]: text } });
      const refusal = await world.refused("checkpoint", PERSON, save(name));
      const advised = /such as "([^"]+)"/.exec(refusal?.message ?? "")?.[1] as string;
      assert.equal(await world.refused("checkpoint", PERSON, save(advised)), null);
      const { explicit } = await world.store.read.checkpoints.latest(session.id);
      assert.equal(explicit?.constraints[advised], text);
    }
  } finally {
    await world.close();
  }
});
