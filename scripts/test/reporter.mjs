// Runs inside `node --test`, under the project's Node.
import { inspect } from "node:util";

const TEXT_MAX = 4_000;

/**
 * Writes one JSON line for each test, suite or file that passed or failed: its file, its names from the
 * outermost suite inwards (empty for the file itself), and the error. Skipped and todo tests neither pass nor
 * fail. An empty line for each test that ends shows progress, because Node reports results file by file.
 */
async function* report(source) {
  const names = new Names();
  const errors = new Map();
  for await (const { type, data } of source) {
    if (type === "test:enqueue") names.add(data);
    if (type === "test:stderr") {
      errors.set(data.entryFile, ((errors.get(data.entryFile) ?? "") + data.message).slice(-TEXT_MAX));
    }
    if (type === "test:complete") yield "\n";
    if (type !== "test:pass" && type !== "test:fail") continue;
    if (isSet(data.skip) || isSet(data.todo)) continue;
    const file = data.entryFile ?? data.file;
    const path = names.pathOf(data);
    const kind = path.length === 0 ? "file" : data.details.type;
    if (type === "test:pass") yield line({ file, path, kind, passed: true });
    else {
      const { error } = data.details;
      // The error of a whole file says only that it failed; its standard error says why.
      const text = textOf(error) + (kind === "file" ? `\n${errors.get(file) ?? ""}` : "");
      const follows = error.failureType === "subtestsFailed";
      yield line({ file, path, kind, passed: false, follows, text });
    }
  }
}

// oxlint-disable-next-line import/no-default-export -- Node takes a reporter's default export.
export { report as default };

/** The names of all tests of a run. Node gives each test a number, which is unique in its test file. */
class Names {
  #known = new Map();

  add(data) {
    if (data.entryFile !== undefined) this.#known.set(keyOf(data), data);
  }

  /** Returns the names from the outermost suite inwards, or nothing for a file and for a hook of a file. */
  pathOf(data) {
    const path = [];
    let test = this.#known.get(keyOf(data));
    while (test !== undefined) {
      path.unshift(test.name);
      test = this.#known.get(keyOf({ ...test, testId: test.parentId }));
    }
    return path;
  }
}

function keyOf({ entryFile, testId }) {
  return `${testId} ${entryFile}`;
}

function textOf(error) {
  const cause = error.cause ?? error;
  return (cause instanceof Error ? (cause.stack ?? String(cause)) : inspect(cause)).slice(0, TEXT_MAX);
}

function isSet(value) {
  return value !== undefined && value !== false;
}

function line(result) {
  return `${JSON.stringify(result)}\n`;
}
