export interface Check {
  readonly name: string;
  readonly ok: boolean;
  /** True if Kinfold works even when this check fails. Doctor then reports the failure but does not fail. */
  readonly optional?: true;
  readonly text: string;
  readonly advice: string | null;
}

export function good(name: string, text: string, advice: string | null = null): Check {
  return { name, ok: true, text, advice };
}

export function bad(name: string, text: string, advice: string | null): Check {
  return { name, ok: false, text, advice };
}

export function optional(name: string, text: string, advice: string | null): Check {
  return { name, ok: false, optional: true, text, advice };
}
