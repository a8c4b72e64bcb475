import type { ReadStream } from "node:tty";

/** Calls `onKey` for each key until the signal is aborted, then restores the terminal's mode. */
export function keysOf(stdin: NodeJS.ReadStream, signal: AbortSignal, onKey: (key: string) => void): void {
  const terminal = stdin as ReadStream;
  const onData = (data: string) => onKey(data);
  const restore = () => terminal.setRawMode(false);
  terminal.setRawMode(true);
  terminal.setEncoding("utf8");
  terminal.on("data", onData);
  process.once("exit", restore);
  signal.addEventListener("abort", () => {
    terminal.off("data", onData);
    terminal.pause();
    restore();
    process.off("exit", restore);
  });
}
