import { after } from "node:test";
import { uuidv7 } from "uuidv7";
import { silentLog } from "../log.ts";
import { openStore } from "./open.ts";
import { storeSuite } from "./conformance/store.spec.ts";
import { testPostgres } from "./testing/test-postgres.ts";

const server = await testPostgres();
after(() => server.stop());

storeSuite({
  name: "PostgreSQL",
  async database() {
    const url = await server.url();
    return {
      open: () =>
        openStore({
          config: { store: url, node: "local" },
          paths: { database: "" },
          boot: uuidv7(),
          log: silentLog,
          searchMs: 10_000,
        }),
      remove: async () => undefined,
    };
  },
});
