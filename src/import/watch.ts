import { type FSWatcher, watch } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import { isInside } from "../system/folder.ts";

/** Folders beyond this limit are not watched; periodic scans cover them. */
const FOLDERS_MAX = 8_192;
/** Whether one watch can cover a whole tree. Not on Linux: there Node would create one watch per file. */
const IS_TREE = process.platform === "darwin" || process.platform === "win32";

/** Reports which files below some folders change. The next scan finds changes that the watch misses. */
export class Watch {
  readonly #onChange: (file: string) => void;
  readonly #watchers = new Map<string, FSWatcher>();

  constructor(onChange: (file: string) => void) {
    this.#onChange = onChange;
  }

  /** Watches `root`. If one watch cannot cover a tree, also watches every folder from `root` to `files`. */
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

  /** Watches a new folder. Returns true if it already had content, because the watch does not report that. */
  async enter(folder: string, depthMax: number): Promise<boolean> {
    if (IS_TREE || depthMax === 0) return false;
    const isFolder = await stat(folder).then(
      (found) => found.isDirectory(),
      () => false,
    );
    if (!isFolder) return false;
    this.#add(folder);
    // The folder may have been removed in the meantime.
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
      // The folder is gone, or the system's limit of watches is reached: the next scan covers it.
      this.#drop(folder);
    }
  }

  #drop(folder: string): void {
    this.#watchers.get(folder)?.close();
    this.#watchers.delete(folder);
  }
}
