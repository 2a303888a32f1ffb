/** The rows of a CSV text, or what is wrong with it. */
type ParsedCsv = { readonly rows: string[][] } | { readonly problem: string };

/** Parses CSV as RFC 4180 has it, with either kind of line end. Empty lines are left out. */
export function parseCsv(text: string, rowsMax: number): ParsedCsv {
  const rows: string[][] = [];
  let row: string[] = [];
  let position = text.startsWith('\uFEFF') ? 1 : 0;
  while (position < text.length) {
    if (rows.length === rowsMax) return { problem: `The text has more than ${rowsMax} rows.` };
    const cell = text[position] === '"' ? quotedCell(text, position) : plainCell(text, position);
    if (!cell) return { problem: `Row ${rows.length + 1}: a quoted cell is not closed, or goes on after its quotes.` };
    row.push(cell.value);
    position = cell.end;
    const isLast = position >= text.length;
    if (text[position] === ',') {
      position++;
      // After a comma at the very end there is one more cell, which is empty.
      if (position >= text.length) rows.push([...row, '']);
      continue;
    }
    if (row.length > 1 || row[0] !== '') rows.push(row);
    row = [];
    if (!isLast) position += text.startsWith('\r\n', position) ? 2 : 1;
  }
  return { rows };
}

const SEPARATORS: ReadonlySet<string> = new Set([',', '\r', '\n']);

interface Cell {
  readonly value: string;
  /** Index of the separator, the line end or the end of the text. */
  readonly end: number;
}

function plainCell(text: string, start: number): Cell {
  let end = start;
  while (end < text.length && !SEPARATORS.has(text[end]!)) end++;
  return { value: text.slice(start, end), end };
}

function quotedCell(text: string, start: number): Cell | undefined {
  let value = '';
  let from = start + 1;
  for (;;) {
    const quote = text.indexOf('"', from);
    if (quote < 0) return undefined;
    value += text.slice(from, quote);
    if (text[quote + 1] !== '"') {
      const end = quote + 1;
      return end >= text.length || SEPARATORS.has(text[end]!) ? { value, end } : undefined;
    }
    value += '"';
    from = quote + 2;
  }
}

/** Formats rows as CSV; cells are quoted where necessary. */
export function writeCsv(rows: readonly (readonly unknown[])[]): string {
  return rows.map((row) => `${row.map(cellText).join(',')}\r\n`).join('');
}

function cellText(value: unknown): string {
  const text =
    value === undefined || value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : `${value}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
