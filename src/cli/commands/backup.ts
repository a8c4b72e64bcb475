import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Call } from "../call.ts";
import { openConnection } from "../daemon/connection.ts";
import { refused } from "../failure.ts";
import { bytes } from "../../text/quantity.ts";

export async function run(call: Call): Promise<void> {
  const path = resolve(call.args[0] ?? "");
  if (existsSync(path)) {
    throw refused("file_exists", `${path} already exists; a backup never overwrites a file.`, [
      "Choose another name: kinfold backup kinfold-$(date +%F-%H%M).db",
    ]);
  }
  if (!existsSync(dirname(path))) {
    throw refused("folder_not_found", `The folder ${dirname(path)} does not exist.`, [
      `Create it: mkdir -p ${dirname(path)}`,
    ]);
  }
  const { client } = await openConnection(call);
  const done = await client.backup({ path });
  call.io.answer(done, `${call.io.tick} ${bytes(done.bytes)} in ${done.path}`);
}
