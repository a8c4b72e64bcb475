/** The store cannot be opened, or cannot continue. The message says what to do. */
export class StoreProblem extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The store does not answer at the moment; the daemon waits for it. */
export interface StoreTrouble {
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** For people: which store does not answer, and why. */
  readonly text: string;
}

export interface Holder {
  readonly pid: number | null;
  /** Milliseconds since the epoch. */
  readonly since: number | null;
  readonly host: string | null;
  readonly boot: string | null;
}

/** Another daemon uses this store or, in a store that several daemons share, this node's name. */
export class StoreLocked extends StoreProblem {
  readonly holder: Holder;

  constructor(where: string, holder: Holder) {
    const who = holder.pid === null ? "another Kinfold" : `another Kinfold (process ${holder.pid})`;
    const host = holder.host === null ? "" : ` on ${holder.host}`;
    const since = holder.since === null ? "" : ` since ${new Date(holder.since).toISOString()}`;
    super(
      `${where} is in use by ${who}${host}${since}. ` +
        "Stop that one first (kinfold down), or use another KINFOLD_HOME or node name.",
    );
    this.holder = holder;
  }
}

const RESTORE =
  "Nothing was changed. Repair it with one of: " +
  "kinfold restore <backup file>; " +
  "kinfold restore --from-rollouts (transcripts come back as ended sessions); " +
  "kinfold restore --as-is (what can still be read); " +
  "kinfold restore --empty (start with nothing). Each keeps the old files in a separate folder.";

/** The database file is damaged. It was left untouched. */
export class StoreCorrupt extends StoreProblem {
  readonly path: string;

  constructor(path: string, found: string, options?: ErrorOptions) {
    super(`The database ${path} is damaged (${found}). ${RESTORE}`, options);
    this.path = path;
  }
}

/** The store existed before, and it or a part of it is gone. The remaining files were left untouched. */
export class StoreLost extends StoreProblem {
  constructor(missing: string, proof: readonly string[]) {
    super(`${missing} There was a store here: ${proof.join("; ")}. ${RESTORE}`);
  }
}

/** A newer Kinfold created the schema. */
export class StoreTooNew extends StoreProblem {
  constructor(where: string, found: number, known: number) {
    super(
      `${where} was created by a newer Kinfold (schema ${found}; this one knows up to ${known}). ` +
        "Start that version, or restore a backup made before the upgrade.",
    );
  }
}

/** The folder, the disk or the server prevents the store from being opened. */
export class StoreUnusable extends StoreProblem {}

/** A value in the store that we cannot have written. Everything else can still be read. */
export class DamagedValue extends StoreProblem {
  constructor(where: string, what: string, options?: ErrorOptions) {
    super(
      `The store holds a damaged value: ${where} cannot be read, ${what}. Other sessions are not affected. ` +
        "Stop the daemon and use kinfold restore with a backup, or with --from-rollouts.",
      options,
    );
  }
}
