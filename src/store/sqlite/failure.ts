import { asError } from "../../system/error.ts";
import { Refusal } from "../../contract/refusal.ts";
import { StoreCorrupt } from "../problem.ts";

/** SQLite's primary result codes that we handle. */
export const BUSY = 5;
export const CORRUPT = 11;
export const FULL = 13;
export const IOERR = 10;
export const LOCKED = 6;
export const NOTADB = 26;
export const READONLY = 8;

/** Returns the primary result code of an SQLite error, or null for any other error. */
export function codeOf(error: unknown): number | null {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return null;
  return error.errcode & 0xff;
}

/** Turns a disk failure into a refusal; returns any other error unchanged. */
export function translated(error: unknown, path: string): unknown {
  switch (codeOf(error)) {
    case FULL:
      return new Refusal(
        "disk_full",
        "The disk that holds the store is full; nothing was changed. Free some space and try again.",
      );
    case BUSY:
    case LOCKED:
      return new Refusal(
        "store_busy",
        "Another program holds the database; nothing was changed. Try again in a moment.",
      );
    case IOERR:
    case READONLY:
      return new Refusal(
        "store_busy",
        `The database cannot be written (${asError(error).message}); nothing was changed. Check its disk and permissions, then try again.`,
      );
    case CORRUPT:
    case NOTADB:
      return new StoreCorrupt(path, asError(error).message, { cause: error });
    default:
      return error;
  }
}
