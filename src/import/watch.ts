import { type FSWatcher, watch } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import { isInside } from "../system/folder.ts";

/** Folders beyond these are found by looking at everything now and then. */
const FOLDERS_MAX = 8_192;
/** Linux has no watch over a whole tree: Node would make one for every single file. */
const IS_TREE = process.platform === "darwin" || process.platform === "win32";

/** Says which files below some folders change. Advice only: what it misses, the next scan finds. */
export class Watch {
  readonly #onChange: (file: string) => void;
  readonly #watchers = new Map<string, FSWatcher>();

  constructor(onChange: (file: string) => void) {
    this.#onChange = onChange;
  }

  /** Watches a root and, where the system watches single folders only, those on the way to these files. */
  follow(root: string, files: Iterable<string>): void {
    this.#add(root);
    if (IS_TREE) return;
    for (const file of files) {
      for (let folder = path.dirname(file); folder !== root && isInside(folder, root);) {
        if (this.#watchers.has(folder)) break;
        this.#add(folder);
        folder = path.dirname(folder);
      }
    }
  }

  /**
   * Something new came: where it is a folder it is watched. True when something was in it already, which
   * no watch will tell.
   */
  async enter(folder: string, depthMax: number): Promise<boolean> {
    if (IS_TREE || depthMax === 0) return false;
    const isFolder = await stat(folder).then(
      (found) => found.isDirectory(),
      () => false,
    );
    if (!isFolder) return false;
    this.#add(folder);
    // The folder was removed in the meantime.
    const inside = await readdir(folder, { withFileTypes: true }).catch(() => []);
    for (const each of inside) {
      if (each.isDirectory()) await this.enter(path.join(folder, each.name), depthMax - 1);
    }
    return inside.length > 0;
  }

  close(): void {
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  #add(folder: string): void {
    if (this.#watchers.has(folder) || this.#watchers.size >= FOLDERS_MAX) return;
    try {
      const watcher = watch(folder, { recursive: IS_TREE, persistent: false }, (_, name) => {
        this.#onChange(name === null ? folder : path.join(folder, name));
      });
      watcher.on("error", () => this.#drop(folder));
      this.#watchers.set(folder, watcher);
    } catch {
      // It is not there, or there are as many watches as the system allows: the next scan looks itself.
      this.#drop(folder);
    }
  }

  #drop(folder: string): void {
    this.#watchers.get(folder)?.close();
    this.#watchers.delete(folder);
  }
}
