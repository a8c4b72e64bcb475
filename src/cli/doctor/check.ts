/** One thing that was looked at. `advice` says what to do where it is not well. */
export interface Check {
  readonly name: string;
  readonly ok: boolean;
  /** Not needed for work: told, but no failure. */
  readonly optional?: boolean;
  readonly text: string;
  readonly advice: string | null;
}
