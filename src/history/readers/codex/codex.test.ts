import { cp } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { provesReader } from "../../reader.spec.ts";
import { codex } from "./index.ts";
import { layAll } from "./testing/layouts.ts";

const recorded = fileURLToPath(new URL("testing/fixtures", import.meta.url));
const isLines = ({ path }: { path: string }): boolean => path.endsWith(".jsonl");

provesReader("Codex", {
  reader: codex,
  lay: (root) => cp(recorded, root, { recursive: true }),
  isLines,
});

provesReader("Codex in every form", { reader: codex, lay: layAll, isLines });
