/** The longest name of a tool that every provider takes. */
const CHARACTERS_MAX = 64;

/** Names that any model can be told, and the tools that they stand for, in the same order. */
export function modelNames(tools: readonly string[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const tool of tools) {
    const plain = tool.replace(/[^\w-]/g, '_').slice(0, CHARACTERS_MAX);
    let name = plain;
    for (let count = 2; names.has(name); count++) name = `${plain.slice(0, CHARACTERS_MAX - 4)}_${count}`;
    names.set(name, tool);
  }
  return names;
}
