/** The result of one check. `advice` says what to do if it is not `ok`. */
export interface Check {
  readonly name: string;
  readonly ok: boolean;
  /** Not needed for work: it is reported, but does not make doctor fail. */
  readonly optional?: boolean;
  readonly text: string;
  readonly advice: string | null;
}
