import { DatabaseSync } from "node:sqlite";

/** A program at work on a database: it does what it is told, one statement after the other. */
const path = process.argv[2];
if (path !== undefined && process.send !== undefined) {
  const database = new DatabaseSync(path);
  process.on("message", (sql: string) => {
    database.exec(sql);
    process.send?.("done");
  });
  process.send("ready");
}
