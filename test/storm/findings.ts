/** A broken promise, with the details to find it in the tables and journals. */
export interface Finding {
  readonly rule: string;
  readonly what: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

export class Findings {
  readonly all: Finding[] = [];

  add(rule: string, what: string, detail: Readonly<Record<string, unknown>> = {}): void {
    this.all.push({ rule, what, detail });
  }
}

export class Counts {
  readonly all = new Map<string, number>();

  add(name: string, by = 1): void {
    this.all.set(name, (this.all.get(name) ?? 0) + by);
  }

  get(name: string): number {
    return this.all.get(name) ?? 0;
  }
}
