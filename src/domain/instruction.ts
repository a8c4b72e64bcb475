/** The task first, so that an agent's own commands in its first line stay what they are. */
export function withInstructions(
  prompt: string,
  work: { readonly profile: string; readonly instructions: string | null },
): string {
  if (work.instructions === null) return prompt;
  return `${prompt}\n\n---\nHow to work (profile "${work.profile}"):\n${work.instructions}`;
}
