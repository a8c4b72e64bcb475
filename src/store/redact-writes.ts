import { writeRedactions, LongTexts, searched } from "../secrets/redact-long.ts";
import { takeSteps } from "../system/steps.ts";

/** A write that has other long texts every time it is tried must end too: then they are searched in one go. */
const TRIES_MAX = 8;

/**
 * Tries a write. Where it has long texts to redact, it throws and leaves nothing behind, they are searched step by step,
 * and it is tried again from its beginning. The write calls `begin` when its turn has come.
 */
export async function redactWrites<T>(write: (begin: () => void) => Promise<T>): Promise<T> {
  const kept = new Set<string>();
  try {
    for (let tries = 1; ; tries += 1) {
      const isLimited = tries < TRIES_MAX;
      writeRedactions.open(isLimited);
      try {
        return await write(() => writeRedactions.begin());
      } catch (error) {
        if (!(error instanceof LongTexts)) throw error;
        await keep(error.texts, kept);
      } finally {
        writeRedactions.close(isLimited);
      }
    }
  } finally {
    for (const text of kept) writeRedactions.release(text);
  }
}

async function keep(texts: readonly string[], kept: Set<string>): Promise<void> {
  for (const [text, shown] of await takeSteps(searched(texts))) {
    if (kept.has(text)) continue;
    kept.add(text);
    writeRedactions.keep(text, shown);
  }
}
