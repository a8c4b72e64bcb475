/** Returns the last eight characters, which are random in a UUIDv7. */
export function shortId(id: string): string {
  return id.slice(-8);
}
