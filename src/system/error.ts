/** Returns any thrown value as an error. */
export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** Returns the code that Node or a database driver gave an error, such as ENOENT; empty if there is none. */
export function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}
