// Loaded before the daemon. Records every module that is loaded afterwards, and writes the list when the
// process ends.
import { writeFileSync } from "node:fs";
import { registerHooks } from "node:module";

const urls: string[] = [];
registerHooks({
  load(url, context, next) {
    urls.push(url);
    return next(url, context);
  },
});
process.on("exit", () => writeFileSync(process.env["LOADED_FILE"] ?? "", urls.join("\n")));
