import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  loadProfiles,
  prepareHome,
  type ProfileSet,
  readProjectProfile,
  trustProject,
} from "../../config/index.ts";
import type { Profile, ProfileProblem } from "../../contract/index.ts";
import { fileAndLine } from "../../contract/profile.ts";
import type { Call } from "../call.ts";
import { cancelled, type Failure, refused } from "../failure.ts";
import { gridLines } from "../terminal/grid.ts";
import { homeOf } from "../daemon/home.ts";
import { confirm } from "../terminal/prompt.ts";
import { limitWords } from "../spawning.ts";
import { harmless, cleanLine } from "../terminal/text.ts";
import { nearest } from "../../text/nearest.ts";
import { count } from "../../text/quantity.ts";

export async function run(call: Call): Promise<void> {
  const [action, subject] = call.args;
  if (action === "trust") return await trust(call, resolve(subject ?? "."));
  const set = await loadProfiles({ home: homeOf(call).home, project: process.cwd() });
  if (action === "show") return show(call, set, subject);
  return call.io.json ? call.io.answer(set) : list(call, set);
}

function list(call: Call, set: ProfileSet): void {
  const rows = set.profiles.map((profile) => [
    { text: profile.name, colour: "bold" as const },
    { text: cleanLine(profile.description) },
    { text: cleanLine(profile.from), colour: "soft" as const },
  ]);
  const columns = [{ title: "PROFILE" }, { title: "WHAT FOR", flexible: true }, { title: "FROM" }];
  call.io.lines(gridLines(columns, rows, { columns: call.io.columns(), paint: call.io.paint }));
  if (set.problems.length > 0) call.io.line();
  for (const problem of set.problems) call.io.line(`${call.io.paint("red", "✗")} ${problemWords(problem)}`);
  if (set.untrusted.length === 0) return;
  call.io.line();
  for (const { name, file } of set.untrusted)
    call.io.line(`${cleanLine(name)}: ${cleanLine(file)} is not trusted yet`);
  call.io.line("Read the files, then trust them: kinfold profiles trust");
}

function show(call: Call, set: ProfileSet, name: string | undefined): void {
  const profile = set.profiles.find((each) => each.name === name);
  if (profile === undefined) throw unknown(set, name);
  if (call.io.json) return call.io.answer({ profile });
  const { paint } = call.io;
  call.io.line(`${paint("bold", profile.name)}  ${cleanLine(profile.description)}`);
  for (const [title, text] of facts(profile)) call.io.line(`  ${paint("soft", title.padEnd(11))} ${text}`);
  call.io.line();
  call.io.line(harmless(profile.instructions) || paint("soft", "No instructions of its own."));
}

function facts(profile: Profile): [string, string][] {
  const rows: [string, string | null][] = [
    ["agent", profile.agent],
    ["model", profile.model],
    ["permission", profile.permission],
    ["tools", profile.tools?.join(", ") ?? null],
    ["without", profile.disallowedTools.join(", ")],
    ["mcp", profile.mcp?.join(", ") ?? null],
    [
      "limits",
      limitWords(profile.maxTurns === null ? profile.limits : { turns: profile.maxTurns, ...profile.limits }),
    ],
    ["accepts", profile.accepts.join(", ")],
    ["from", profile.from],
  ];
  return rows.flatMap(([title, text]) =>
    text === null || text === "" ? [] : [[title, cleanLine(text)] as [string, string]],
  );
}

function unknown(set: ProfileSet, name: string | undefined): Failure {
  const names = set.profiles.map((profile) => profile.name);
  const untrusted = set.untrusted.find((each) => each.name === name);
  if (untrusted !== undefined) {
    const text = `The profile "${cleanLine(untrusted.name)}" is not trusted yet: ${cleanLine(untrusted.file)}.`;
    return refused("untrusted_project", text, ["Read the file, then trust it: kinfold profiles trust"]);
  }
  const all = `Profiles: ${names.join(", ")}`;
  const problem = name === undefined ? undefined : set.problems.find((each) => each.names.includes(name));
  if (problem !== undefined) {
    const next = ["Correct or remove that file, or use another profile.", all];
    return refused("bad_profile", `The profile cannot be used: ${problemWords(problem)}.`, next);
  }
  if (name === undefined) return refused("unknown_profile", "The name of the profile is missing.", [all]);
  const close = nearest(name, names).slice(0, 1);
  const next = [...close.map((each) => `Did you mean: ${each}`), all];
  return refused("unknown_profile", `There is no profile "${cleanLine(name)}".`, next);
}

async function trust(call: Call, project: string): Promise<void> {
  if (!existsSync(project)) throw refused("cwd_not_found", `There is no folder ${project}.`);
  const paths = homeOf(call);
  const { untrusted: waiting } = await loadProfiles({ home: paths.home, project });
  if (waiting.length === 0) {
    const folder = join(project, ".kinfold", "agents");
    const text = existsSync(folder)
      ? "All profile files of this project are already trusted."
      : `There are no profile files in ${folder}.`;
    return call.io.answer({ trusted: [] }, text);
  }
  const { files, problems } = await readWaiting(project, waiting);
  const wrong = problems.map((problem) => `Not trusted: ${problemWords(problem)}`);
  if (files.length === 0) throw refused("bad_profile", "None of the files can be used.", wrong);
  for (const line of wrong) call.io.note(line);
  if (!call.io.json) for (const profile of files) for (const line of summary(profile)) call.io.note(line);
  if (!call.flags.on("yes") && call.io.tty && call.io.stdin.isTTY === true) {
    if (!(await confirm(call, `Trust ${count(files.length, "file")} as they are now?`)))
      throw cancelled("not_confirmed", "Nothing was trusted.");
  }
  prepareHome(paths);
  await trustProject(paths.home, project);
  call.io.answer(
    { trusted: files.map(({ from }) => from), problems },
    `${call.io.tick} ${count(files.length, "profile")} trusted: ${files.map(({ name }) => name).join(", ")}. A changed file must be trusted again.`,
  );
}

async function readWaiting(
  project: string,
  waiting: ProfileSet["untrusted"],
): Promise<{ files: Profile[]; problems: ProfileProblem[] }> {
  const files: Profile[] = [];
  const problems: ProfileProblem[] = [];
  for (const { file } of waiting) {
    const read = await readProjectProfile(project, file);
    if ("profile" in read) files.push(read.profile);
    else problems.push(read.problem);
  }
  return { files, problems };
}

function problemWords(problem: ProfileProblem): string {
  const names = problem.names.length === 0 ? "" : `${problem.names.join(", ")}: `;
  return cleanLine(`${names}${fileAndLine(problem)}: ${problem.text}`);
}

function summary(profile: Profile): string[] {
  const lines = facts(profile).map(([title, text]) => `  ${title.padEnd(11)} ${text}`);
  return [`${profile.name}: ${cleanLine(profile.description)}`, ...lines];
}
