import { DatabaseSync, StatementSync } from "node:sqlite";
import pg from "pg";

/** Reports the text of every statement that this thread sends to a database from now on. */
export function reportStatements(sent: (text: string) => void): void {
  around(StatementSync.prototype, ["all", "get", "run", "iterate"], function (this: StatementSync) {
    sent(this.sourceSQL);
  });
  around(DatabaseSync.prototype, ["exec"], (text) => sent(String(text)));
  around(pg.Client.prototype, ["query"], (query) => {
    const text = typeof query === "string" ? query : (query as { text?: string } | undefined)?.text;
    // One text may contain several statements.
    for (const each of (text ?? "").split(";")) if (each.trim() !== "") sent(each.trim());
  });
}

function around(prototype: object, names: readonly string[], before: (...args: unknown[]) => void): void {
  for (const name of names) {
    const known = Reflect.get(prototype, name) as (...args: unknown[]) => unknown;
    Reflect.set(prototype, name, function (this: unknown, ...args: unknown[]) {
      before.apply(this, args);
      return known.apply(this, args);
    });
  }
}
