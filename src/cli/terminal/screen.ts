/** Lines that are redrawn in place. Each frame is one write in a synchronized update, so nothing flickers. */
export interface LiveBlock {
  draw(lines: readonly string[]): void;
  /** Keeps the last frame on the screen and shows the cursor again. */
  end(): void;
}

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

/** Calls `undo` when the process exits. Returns a function that removes this handler. */
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
