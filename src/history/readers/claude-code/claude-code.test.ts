import { cp } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { provesReader } from "../../reader.spec.ts";
import { claudeCode } from "./index.ts";

const recorded = fileURLToPath(new URL("testing/fixtures", import.meta.url));

provesReader("Claude Code", {
  reader: claudeCode,
  lay: (root) => cp(recorded, root, { recursive: true }),
  isLines: () => true,
});
