import type { Io } from "./call.ts";
import { ownVersion } from "./daemon/home.ts";
import { Failure } from "./failure.ts";
import { endQuietlyOnBrokenPipe, flushed, processIo } from "./terminal/io.ts";
import { loadCommand, readCommandLine } from "./program.ts";

/** Runs the command, reports errors, and returns the exit code. */
async function main(argv: readonly string[]): Promise<number> {
  const env = process.env;
  const io = processIo({ json: argv.includes("--json"), env });
  try {
    const asked = await readCommandLine(argv, ownVersion());
    if (asked.kind === "text") {
      io.stdout.write(asked.text);
      return 0;
    }
    const command = await loadCommand(asked.row);
    return (await command.run({ args: asked.args, flags: asked.flags, io, env })) ?? 0;
  } catch (error) {
    return await complain(error, io);
  }
}

/** Imports `explain` only here, because most commands never need it. */
async function complain(error: unknown, io: Io): Promise<number> {
  const { explain } = await import("./explain.ts");
  const failure = error instanceof Failure ? error : explain(error);
  if (io.json) {
    const { code, message, next, details } = failure;
    io.answer({ error: { code, message, next, details } });
    return failure.exit;
  }
  io.note(failure.message);
  for (const line of failure.next) io.note(`  ${line}`);
  if (process.env["KINFOLD_DEBUG"] && error instanceof Error) io.note(error.stack ?? "");
  return failure.exit;
}

endQuietlyOnBrokenPipe();
const exit = await main(process.argv.slice(2));
await flushed();
process.exit(exit);
