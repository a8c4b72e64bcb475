import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { uuidv7 } from "uuidv7";
import { silentLog } from "../log.ts";
import { openStore } from "./open.ts";
import { storeSuite } from "./conformance/store.spec.ts";

storeSuite({
  name: "embedded",
  async database() {
    const folder = mkdtempSync(join(tmpdir(), "kinfold-store-"));
    return {
      open: () =>
        openStore({
          config: { store: "sqlite", node: "local" },
          paths: { database: join(folder, "kinfold.db") },
          boot: uuidv7(),
          log: silentLog,
          searchMs: 10_000,
        }),
      remove: async () => rmSync(folder, { recursive: true }),
    };
  },
});
