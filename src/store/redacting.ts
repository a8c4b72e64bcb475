import { desk, LongTexts, searched } from "../secrets/redact-long.ts";
import { takeSteps } from "../system/steps.ts";

/** A write that has other long texts every time it is tried must end too: then they are searched in one go. */
const TRIES_MAX = 8;

/**
 * Tries a write. Where it has long texts to redact, it throws and leaves nothing behind, they are searched step by step,
 * and it is tried again from its beginning. The write calls `begin` when its turn has come.
 */
export async function redactingLong<T>(write: (begin: () => void) => Promise<T>): Promise<T> {
  const held = new Set<string>();
  try {
    for (let tries = 1; ; tries += 1) {
      const isLimited = tries < TRIES_MAX;
      desk.open(isLimited);
      try {
        return await write(() => desk.begin());
      } catch (error) {
        if (!(error instanceof LongTexts)) throw error;
        await hold(error.texts, held);
      } finally {
        desk.close(isLimited);
      }
    }
  } finally {
    for (const text of held) desk.release(text);
  }
}

async function hold(texts: readonly string[], held: Set<string>): Promise<void> {
  for (const [text, shown] of await takeSteps(searched(texts))) {
    if (held.has(text)) continue;
    held.add(text);
    desk.hold(text, shown);
  }
}
