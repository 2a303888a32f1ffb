/** The text with everything that looks like a secret replaced. */
export function redactText(text: string): string {
  return text;
}
