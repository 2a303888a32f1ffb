/** A Markdown table; the first row is its header. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const [header, ...rest] = rows;
  return [line(header!), `|${header!.map(() => '---|').join('')}`, ...rest.map(line)];
}
