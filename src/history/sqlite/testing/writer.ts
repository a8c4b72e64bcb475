import { DatabaseSync } from "node:sqlite";

/** This process executes the SQL statements that its parent process sends, one after the other. */
const path = process.argv[2];
if (path !== undefined && process.send !== undefined) {
  const database = new DatabaseSync(path);
  process.on("message", (sql: string) => {
    database.exec(sql);
    process.send?.("done");
  });
  process.send("ready");
}
