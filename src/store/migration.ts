import { readdirSync, readFileSync } from "node:fs";

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly text: string;
}

/** Returns the numbered files of a folder. The numbers must start at 1 and have no gap. */
export function migrationsIn(folder: URL): Migration[] {
  const files = readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .sort();
  return files.map((file, i) => {
    const number = Number.parseInt(file, 10);
    if (number !== i + 1) throw new Error(`migration ${file} should have number ${i + 1}`);
    return { number, name: file, text: readFileSync(new URL(file, folder), "utf8") };
  });
}
