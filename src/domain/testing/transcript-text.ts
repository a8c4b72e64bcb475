import type { Entry } from "../../contract/index.ts";
import { TranscriptWriter } from "../transcript.ts";

export function transcriptText(
  entries: readonly Entry[],
  ...as: ConstructorParameters<typeof TranscriptWriter>
): string {
  const writer = new TranscriptWriter(...as);
  for (const entry of entries) writer.add(entry);
  return writer.end();
}
