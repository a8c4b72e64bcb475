import { join } from "node:path";
import { provesReader } from "../../reader.spec.ts";
import { opencode } from "./index.ts";
import { layRecorded, layTree, OLD_SCHEMA, Writer } from "./testing/session.ts";

provesReader("OpenCode", {
  reader: opencode,
  isLines: () => false,
  async lay(root) {
    layRecorded(join(root, "opencode.db")).close();
    const old = new Writer(join(root, "opencode-next.db"), OLD_SCHEMA);
    old.session("ses_old").user("ses_old", "Hi");
    for (let count = 0; count < 30; count += 1) old.answer("ses_old", `Answer ${count}`);
    old.task("ses_old", "call_1", { status: "running", metadata: { sessionId: "ses_gone" } });
    old.close();
    const tree = new Writer(":memory:");
    tree.session("ses_tree").user("ses_tree", "From a tree");
    tree.answer("ses_tree", "Yes.");
    await layTree(root, tree);
    tree.close();
  },
});
