/** Joins pieces of text, which may be cut anywhere, into lines. Only LF ends a line; blank lines are left out. */
export class LineReader {
  readonly #decoder = new TextDecoder();
  #rest: string[] = [];

  push(piece: Uint8Array): string[] {
    const [first = "", ...others] = this.#decoder.decode(piece, { stream: true }).split("\n");
    this.#rest.push(first);
    if (others.length === 0) return [];
    const lines = [this.#rest.join(""), ...others];
    this.#rest = [lines.pop() ?? ""];
    return lines.filter((line) => line.trim() !== "");
  }

  /** Returns the last line, if no LF has ended it. */
  rest(): string {
    return this.#rest.join("");
  }
}
