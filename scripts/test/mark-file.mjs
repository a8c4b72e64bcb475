// Preloaded into the processes of `node --test`, under the project's Node.
import { relative } from "node:path";
import { isMainThread } from "node:worker_threads";
import { MARK, withFile } from "../test-run.mjs";

// Adds its test file to the mark of a test process, so that what it starts inherits both.
if (isMainThread && process.env.NODE_TEST_CONTEXT === "child-v8" && process.env[MARK] !== undefined) {
  process.env[MARK] = withFile(process.env[MARK], relative(process.cwd(), process.argv[1]));
}
