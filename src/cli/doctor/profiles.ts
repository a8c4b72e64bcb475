import { loadProfiles } from "../../config/index.ts";
import { fileAndLine } from "../../contract/profile.ts";
import { count } from "../../text/quantity.ts";
import type { Call } from "../call.ts";
import { homeOf } from "../daemon/home.ts";
import { cleanLine } from "../terminal/text.ts";
import { bad, type Check, good } from "./check.ts";

/** Checks the profile files of the home and of the current folder's project. */
export async function checkProfiles(call: Call): Promise<Check[]> {
  const { profiles, problems } = await loadProfiles({ home: homeOf(call).home, project: process.cwd() });
  const name = "profiles";
  if (problems.length === 0) return [good(name, count(profiles.length, "profile"))];
  return problems.map((problem) => {
    const refused = problem.names.map((each) => `"${each}"`).join(", ");
    const until = refused === "" ? "" : `; until then, what names ${refused} is refused`;
    const text = cleanLine(`${fileAndLine(problem)}: ${problem.text}`);
    return bad(name, text, cleanLine(`correct or remove this file${until}`));
  });
}
