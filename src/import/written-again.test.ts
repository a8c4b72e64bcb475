import assert from "node:assert/strict";
import path from "node:path";
import { describe, it } from "node:test";
import { Recording } from "../history/readers/gemini/testing/session.ts";
import { startImporting, until } from "./testing/home.ts";

const S = "31e64e9a-0000-4000-8000-000000000001";

describe("a message that an agent writes again", () => {
  it("is one entry as it is now, and after it was given another one that takes its place", async (t) => {
    const { agents, ...home } = await startImporting(t);
    const root = path.join(agents, ".gemini");
    const chat = new Recording(S).user("Do X").answer("Version A");
    const first = chat.rows.at(-1) as Record<string, unknown>;
    await chat.row({ ...first, content: "Version B" }).write(root);
    await home.import();
    const own = await home.byAgentId(S);
    const texts = async () => (await home.entries(own.id)).map(({ body }) => body.text);
    assert.deepEqual(await texts(), ["Do X", "Version B"]);
    await chat.row({ ...first, content: "Version C" }).write(root);
    const now = await until(async () => {
      const all = await texts();
      return all.length > 2 ? all : null;
    });
    assert.deepEqual(now.slice(0, 2), ["Do X", "Version B"]);
    assert.match(now[2] ?? "", /^Version C\n\[The agent rewrote this: it replaces/u);
    assert.equal(now.length, 3);
  });
});
