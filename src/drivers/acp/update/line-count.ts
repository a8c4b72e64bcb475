/** Counts the lines that a change added and removed, as a diff does. */
export function countLines(before: string, after: string): { added: number; removed: number } {
  // Gives each distinct line a number, so that comparing two lines takes the same time however long they are.
  const numbers = new Map<string, number>();
  const numberOf = (line: string): number => {
    const known = numbers.get(line);
    if (known !== undefined) return known;
    numbers.set(line, numbers.size);
    return numbers.size - 1;
  };
  const old = linesOf(before).map(numberOf);
  const now = linesOf(after).map(numberOf);
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (
    tail < old.length - head &&
    tail < now.length - head &&
    old[old.length - 1 - tail] === now[now.length - 1 - tail]
  ) {
    tail += 1;
  }
  const oldMiddle = old.slice(head, old.length - tail);
  const newMiddle = now.slice(head, now.length - tail);
  const common = oldMiddle.length * newMiddle.length <= CELLS_MAX ? commonLines(oldMiddle, newMiddle) : 0;
  return { added: newMiddle.length - common, removed: oldMiddle.length - common };
}

/** Comparing blocks the event loop. With more line pairs than this, all lines count as changed instead. */
const CELLS_MAX = 1_000_000;

function linesOf(text: string): string[] {
  if (text === "") return [];
  return (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
}

/** Returns the length of the longest common subsequence. */
function commonLines(a: readonly number[], b: readonly number[]): number {
  let row = new Uint32Array(b.length + 1);
  for (const line of a) {
    const next = new Uint32Array(b.length + 1);
    for (let index = 1; index <= b.length; index += 1) {
      next[index] =
        line === b[index - 1]
          ? (row[index - 1] as number) + 1
          : Math.max(row[index] as number, next[index - 1] as number);
    }
    row = next;
  }
  return row[b.length] as number;
}
