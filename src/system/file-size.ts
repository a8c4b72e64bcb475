import { statSync } from "node:fs";

/** In bytes; 0 where there is no such file. */
export function fileSize(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
