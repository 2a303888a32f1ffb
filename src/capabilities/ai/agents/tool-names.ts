/** The longest tool name that every model provider accepts. */
const CHARACTERS_MAX = 64;

/** Maps names that every provider accepts to the tools that they stand for, in the order of the tools. */
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
