/** The last eight characters: the part of a UUIDv7 that is random. */
export function shortId(id: string): string {
  return id.slice(-8);
}
