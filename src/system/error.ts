export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** Returns the code of an error of Node or a database driver, such as ENOENT; empty if there is none. */
export function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}
