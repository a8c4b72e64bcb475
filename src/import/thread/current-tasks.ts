export interface ImportTask {
  readonly format: string;
  readonly path: string;
  /** The session's key, and below it the stamp of its file. Both are null if the task lists a folder. */
  readonly key: string | null;
  readonly stamp: string | null;
}

const SLOT_COUNT = 128;
const SLOT_BYTES = 16 * 1024;
const LENGTH_BYTES = 4;

export function newTaskMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(SLOT_COUNT * SLOT_BYTES);
}

/** The import thread's current tasks, in shared memory: the main thread reads them after the thread dies. */
export class CurrentTasks {
  readonly #slots: readonly Uint8Array[];
  readonly #free: number[];
  readonly #isCareful: boolean;
  #last: Promise<unknown> = Promise.resolve();

  /** `isCareful`: one task at a time, so that it is certain which task the thread dies on. */
  constructor(memory: SharedArrayBuffer, isCareful: boolean) {
    this.#slots = slotsOf(memory);
    this.#free = [...this.#slots.keys()];
    this.#isCareful = isCareful;
  }

  /** A task must not wait for another task, because that would be a deadlock in careful mode. */
  run<T>(task: ImportTask, work: () => Promise<T>): Promise<T> {
    if (!this.#isCareful) return this.#recorded(task, work);
    const own = this.#last.then(() => this.#recorded(task, work));
    // The next task only waits for this one to end; the caller handles a failure.
    this.#last = own.catch(() => undefined);
    return own;
  }

  async #recorded<T>(task: ImportTask, work: () => Promise<T>): Promise<T> {
    // If no slot of the memory is free, the task is not recorded. In careful mode there is only one task, so
    // a slot is always free.
    const index = this.#free.pop();
    if (index === undefined) return work();
    const slot = this.#slots[index] as Uint8Array;
    try {
      write(slot, task);
      return await work();
    } finally {
      lengthOf(slot).setUint32(0, 0);
      this.#free.push(index);
    }
  }
}

export function tasksIn(memory: SharedArrayBuffer): ImportTask[] {
  return slotsOf(memory).flatMap((slot) => {
    const length = lengthOf(slot).getUint32(0);
    if (length === 0) return [];
    const text = Buffer.from(slot.subarray(LENGTH_BYTES, LENGTH_BYTES + length)).toString("utf8");
    return [JSON.parse(text) as ImportTask];
  });
}

/** The length is written last: until then the slot counts as empty. */
function write(slot: Uint8Array, { format, path, key, stamp }: ImportTask): void {
  const text = Buffer.from(JSON.stringify({ format, path, key, stamp }));
  if (text.length > slot.length - LENGTH_BYTES) return;
  slot.set(text, LENGTH_BYTES);
  lengthOf(slot).setUint32(0, text.length);
}

function lengthOf(slot: Uint8Array): DataView {
  return new DataView(slot.buffer, slot.byteOffset, LENGTH_BYTES);
}

function slotsOf(memory: SharedArrayBuffer): Uint8Array[] {
  return Array.from(
    { length: SLOT_COUNT },
    (_, index) => new Uint8Array(memory, index * SLOT_BYTES, SLOT_BYTES),
  );
}
