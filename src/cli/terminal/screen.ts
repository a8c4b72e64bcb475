/**
 * A block of lines that is drawn again in place. A frame is one write inside a synchronized
 * update, every line is overwritten and then cleared to its end, so nothing ever flickers.
 */
export interface LiveBlock {
  draw(lines: readonly string[]): void;
  /** Leaves the last frame where it is and gives the cursor back. */
  end(): void;
}

/** Draws below what is already on the terminal. */
export function inlineBlock(terminal: NodeJS.WriteStream): LiveBlock {
  let height = 0;
  let shown = "";
  const restore = onExit(() => terminal.write(SHOW_CURSOR));
  return {
    draw(lines) {
      const visible = lines.slice(0, Math.max(1, (terminal.rows ?? 24) - 1));
      const frame = visible.map((line) => `${line}${CLEAR_LINE}\n`).join("");
      if (frame === shown || (frame === "" && height === 0)) return;
      const up = height > 0 ? `\u001b[${height}F` : "\r";
      terminal.write(`${SYNC}${HIDE_CURSOR}${up}${frame}${CLEAR_BELOW}${UNSYNC}`);
      height = visible.length;
      shown = frame;
    },
    end() {
      terminal.write(SHOW_CURSOR);
      restore();
    },
  };
}

/** Takes the whole terminal and gives it back as it was. */
export function fullScreen(terminal: NodeJS.WriteStream): LiveBlock {
  let shown = "";
  terminal.write(`${ALTERNATE}${HIDE_CURSOR}`);
  const leave = () => terminal.write(`${SHOW_CURSOR}${MAIN}`);
  const restore = onExit(leave);
  return {
    draw(lines) {
      const visible = lines.slice(0, terminal.rows ?? 24);
      const frame = visible.map((line) => `${line}${CLEAR_LINE}`).join("\r\n");
      const size = `${terminal.columns}x${terminal.rows}`;
      if (size + frame === shown) return;
      terminal.write(`${SYNC}\u001b[H${frame}${CLEAR_BELOW}${UNSYNC}`);
      shown = size + frame;
    },
    end() {
      leave();
      restore();
    },
  };
}

/** Whatever ends the process, the terminal is left usable. Returns how to take that back. */
function onExit(undo: () => void): () => void {
  process.once("exit", undo);
  return () => void process.off("exit", undo);
}

const SYNC = "\u001b[?2026h";
const UNSYNC = "\u001b[?2026l";
const HIDE_CURSOR = "\u001b[?25l";
const SHOW_CURSOR = "\u001b[?25h";
const CLEAR_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";
const ALTERNATE = "\u001b[?1049h";
const MAIN = "\u001b[?1049l";
