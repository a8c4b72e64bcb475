import { cp } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { provesReader } from "../reader.spec.ts";
import { codex } from "./index.ts";

const recorded = fileURLToPath(new URL("fixtures", import.meta.url));

provesReader("Codex", {
  reader: codex,
  lay: (root) => cp(recorded, root, { recursive: true }),
  isLines: ({ path }) => path.endsWith(".jsonl"),
});
