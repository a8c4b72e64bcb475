import { editDistance } from "../text/nearest.ts";

/** Suggests a similar known word for each unknown word. */
export function nearestWords(
  words: readonly string[],
  known: ReadonlySet<string>,
): { word: string; instead: string }[] {
  return [...new Set(words)].flatMap((word) => {
    if (known.has(word) || word.length < LENGTH_MIN) return [];
    const instead = nearest(word, known);
    return instead === null ? [] : [{ word, instead }];
  });
}

/** Shorter words have too many similar ones. */
const LENGTH_MIN = 3;

function nearest(word: string, known: ReadonlySet<string>): string | null {
  let best: { instead: string; distance: number } | null = null;
  const distanceMax = word.length < 5 ? 1 : 2;
  const letters = lettersOf(word);
  for (const instead of known) {
    const most = best === null ? distanceMax : best.distance - 1;
    if (most < 1) break;
    if (Math.abs(instead.length - word.length) > most) continue;
    // One edit adds or removes at most two distinct letters, so this cheap test excludes most words.
    if (bitsIn(letters ^ lettersOf(instead)) > 2 * most) continue;
    const distance = editDistance(word, instead);
    if (distance <= most) best = { instead, distance };
  }
  return best?.instead ?? null;
}

function lettersOf(word: string): number {
  let letters = 0;
  for (let at = 0; at < word.length; at++) letters |= 1 << (word.charCodeAt(at) & 31);
  return letters;
}

function bitsIn(value: number): number {
  let bits = 0;
  for (let rest = value; rest !== 0; rest &= rest - 1) bits += 1;
  return bits;
}
