import { statSync } from "node:fs";

/** Returns the size in bytes; 0 if there is no such file. */
export function fileSize(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
