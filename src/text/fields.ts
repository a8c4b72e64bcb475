/** An object that another program wrote: nothing is known about its values. */
export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns an object without fields for any value that is not an object. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

/** Returns 0 for any value that is not a number. */
export function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
