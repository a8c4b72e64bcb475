export { readDaemonFile, removeDaemonFile, writeDaemonFile, type DaemonFile } from "./daemon-file.ts";
export { loadConfig, type From, type Loaded, type LoadRequest, type Source } from "./load.ts";
export { kinfoldHome, pathsIn, prepareHome, type Paths } from "./paths.ts";
export { ConfigError, problemLine, type ConfigProblem } from "./problem.ts";
export { loadProfiles, readProjectProfile, trustProject, type ProfileSet } from "./profile.ts";
export { readProjectFile } from "./project-ceiling.ts";
export { SETTINGS, type Setting } from "./setting.ts";
