import type { Call } from "../call.ts";
import type { Check } from "../doctor/check.ts";
import { checkAgents } from "../doctor/agents.ts";
import { checkDaemon } from "../doctor/daemon.ts";
import { checkHistory } from "../doctor/history.ts";
import { checkMachine } from "../doctor/machine.ts";
import { checkProfiles } from "../doctor/profiles.ts";

export async function run(call: Call): Promise<number> {
  const machine = await checkMachine(call);
  const { checks, connection } = await checkDaemon(call);
  const agents = await checkAgents(call, connection);
  const history = await checkHistory(connection);
  const profiles = await checkProfiles(call);
  const all = [...machine, ...profiles, ...checks, ...agents, ...history];
  const isWell = all.every((check) => check.ok || check.optional);
  if (call.io.json) {
    call.io.answer({ ok: isWell, checks: all });
    return isWell ? 0 : 1;
  }
  for (const check of all) call.io.line(drawn(check, call));
  call.io.line();
  call.io.line(isWell ? "All is well." : "Fix the lines marked ✗; the arrow says how.");
  return isWell ? 0 : 1;
}

function drawn(check: Check, call: Call): string {
  const { paint } = call.io;
  const mark = check.ok ? paint("green", "✓") : check.optional ? paint("soft", "–") : paint("red", "✗");
  return `${mark} ${check.name}: ${check.text}${check.advice === null ? "" : ` ${paint("soft", "→")} ${check.advice}`}`;
}
