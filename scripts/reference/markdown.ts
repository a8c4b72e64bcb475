/** Makes text safe for a cell of a Markdown table. */
export function cell(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll("|", "\\|").trim();
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(" | ")} |`;
  return [line(head), `|${head.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}

export function code(text: string): string {
  return text === "" ? "" : `\`${text}\``;
}

export function page(title: string, source: string, blocks: readonly string[]): string {
  const note = `<!-- Made from ${source} by \`npm run docs\`. Do not edit. -->`;
  return `${[`# ${title}`, note, ...blocks.filter(Boolean)].join("\n\n")}\n`;
}
