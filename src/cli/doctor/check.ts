export interface Check {
  readonly name: string;
  readonly ok: boolean;
  /** True if work is possible without it: doctor reports it but does not fail. */
  readonly optional?: boolean;
  readonly text: string;
  readonly advice: string | null;
}
