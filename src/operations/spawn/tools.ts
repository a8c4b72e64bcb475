import type { Effective, Profile } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { mayGive, withheldFrom, withoutWithheld } from "../../domain/tool-list.ts";
import type { SessionRecord } from "../../store/port/store.ts";

/**
 * Those that the profile allows and the parent has; null is all. What was asked for by name must be there.
 * Where a child has no list of tools, those of Kinfold's that are kept from it are withheld by name.
 */
export function decideTools(
  asked: readonly string[] | null,
  profile: Profile,
  parent: SessionRecord | null,
): Pick<Effective, "tools" | "disallowedTools" | "mcp"> {
  const above: Pick<Effective, "tools" | "disallowedTools"> = parent?.effective ?? { tools: null };
  const forbidden = [...new Set([...profile.disallowedTools, ...(above.disallowedTools ?? [])])];
  const lists = [profile.tools, above.tools].filter((each) => each !== null);
  const withheld = [...new Set([...withheldFrom(profile), ...withheldFrom(above)])];
  const isAllowed = (tool: string): boolean =>
    mayGive(tool, withheld) ?? (!forbidden.includes(tool) && lists.every((list) => list.includes(tool)));
  const missing = (asked ?? []).filter((tool) => !isAllowed(tool));
  if (missing.length > 0) {
    const all = lists[0]?.filter(isAllowed).join(", ");
    const allowed =
      all === undefined ? `all but ${[...new Set([...forbidden, ...withheld])].join(", ")}` : all || "none";
    throw new Refusal(
      "permission_too_wide",
      `These tools are not yours or not the profile's to give: ${missing.join(", ")}. Allowed: ${allowed}. Leave tools out to use these.`,
      { asked: missing, profile: profile.name },
    );
  }
  const given = asked ?? lists[0] ?? null;
  const tools = given === null ? null : withoutWithheld(given, withheld).filter(isAllowed);
  const left = withheldFrom({ tools, disallowedTools: forbidden });
  const disallowedTools = [...forbidden, ...withheld.filter((tool) => !left.includes(tool))];
  return {
    tools,
    ...(disallowedTools.length === 0 ? {} : { disallowedTools }),
    ...decideServers(profile, parent),
  };
}

function decideServers(profile: Profile, parent: SessionRecord | null): Pick<Effective, "mcp"> {
  const lists = [profile.mcp, parent?.effective.mcp ?? null].filter((each) => each !== null);
  const [first] = lists;
  if (first === undefined) return {};
  return { mcp: first.filter((name) => lists.every((list) => list.includes(name))) };
}
