import { mkdir, open, readdir, rm, type FileHandle } from "node:fs/promises";
import path from "node:path";
import type { EngineDeps } from "../deps.ts";

/** Maximum length of a message file; text beyond it is dropped. */
const CHARS_MAX = 16 * 1024 * 1024;

/** The remainder of one message that is too long for its entry, in a file that only its owner can read. */
export class MessageFile {
  readonly path: string;
  chars = 0;
  leftOutChars = 0;
  #handle: FileHandle | null = null;
  #failure: Error | null = null;
  #writing: Promise<void> = Promise.resolve();
  readonly #charsMax: number;

  constructor(file: string, charsMax = CHARS_MAX) {
    this.path = file;
    this.#charsMax = charsMax;
  }

  /** True once further text is only counted, not kept. */
  get isFull(): boolean {
    return this.chars >= this.#charsMax;
  }

  /** Adds text, which must already be redacted. */
  add(text: string): void {
    const kept = text.slice(0, Math.max(0, this.#charsMax - this.chars));
    this.leftOutChars += text.length - kept.length;
    if (kept === "") return;
    this.chars += kept.length;
    this.#writing = this.#writing.then(() => this.#write(kept));
  }

  /** Resolves with the write error or null once the whole file is on disk. */
  async end(): Promise<Error | null> {
    await this.#writing;
    try {
      await this.#handle?.sync();
    } catch (error) {
      this.#failure ??= error as Error;
    } finally {
      await this.#handle?.close();
      this.#handle = null;
    }
    return this.#failure;
  }

  async #write(text: string): Promise<void> {
    if (this.#failure !== null) return;
    try {
      this.#handle ??= await this.#create();
      await this.#handle.appendFile(text);
    } catch (error) {
      this.#failure = error as Error;
    }
  }

  async #create(): Promise<FileHandle> {
    await mkdir(path.dirname(this.path), { recursive: true, mode: 0o700 });
    return open(this.path, "wx", 0o600);
  }
}

/** Removes the message files of turns that have no entries left. */
export async function removeMessageFiles(
  { store, messageFolder }: Pick<EngineDeps, "store" | "messageFolder">,
  sessionId: string,
): Promise<void> {
  const folder = path.join(messageFolder, sessionId);
  const keptFrom = await store.read.retention.keptFrom(sessionId);
  for (const name of await namesIn(folder)) {
    const turnId = /^(.+)-\d+-\d+\.txt$/.exec(name)?.[1] ?? "";
    const turn = await store.read.turns.byId(turnId);
    const isKept = turn !== null && (turn.entryTo === null || turn.entryTo > keptFrom);
    if (!isKept) await rm(path.join(folder, name), { force: true });
  }
}

/** Returns the names of a folder's files; none if the folder does not exist, as for most sessions. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
