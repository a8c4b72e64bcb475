import type { Call } from "../call.ts";
import { completionScript, type Shell } from "../completion.ts";

export async function run(call: Call): Promise<void> {
  call.io.stdout.write(completionScript(call.args[0] as Shell));
}
