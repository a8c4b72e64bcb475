import path from "node:path";

/** Whether a folder is excluded, or is below an excluded one. */
export function isExcluded(cwd: string | null, globs: readonly string[], home: string): boolean {
  if (cwd === null) return false;
  return globs.some((glob) => {
    const whole = glob.replace(/^~(?=\/|$)/, home).replace(/\/+$/, "");
    return path.matchesGlob(cwd, whole) || path.matchesGlob(cwd, `${whole}/**`);
  });
}
