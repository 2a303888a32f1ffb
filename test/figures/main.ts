import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { duplicateFigures } from './duplicates.ts';
import { exportFigures } from './exports.ts';
import { type Figure, readSubject } from './figure.ts';
import { cycleFigures } from './graph.ts';
import { habitFigures } from './habits.ts';
import { sizeFigures } from './size.ts';

/**
 * Prints figures about the code in `src`, without its tests. With several `--in DIR`, one column for each checkout:
 * `npm run figures -- --in ../before --in .`; `--list` names what was counted, `--json` prints everything as JSON.
 */

const HERE = resolve(import.meta.dirname, '../..');
const MEASURES = [sizeFigures, habitFigures, cycleFigures, exportFigures, duplicateFigures];

function main(): void {
  const { values } = parseArgs({
    options: {
      in: { type: 'string', multiple: true, default: [HERE] },
      json: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
    },
  });
  const checkouts = values.in.map((path) => resolve(path));
  const columns = checkouts.map(figuresOf);
  if (values.json)
    console.log(JSON.stringify(Object.fromEntries(checkouts.map((path, at) => [path, columns[at]])), null, 2));
  else for (const line of [...tableOf(columns), ...(values.list ? listsOf(columns.at(-1)!) : [])]) console.log(line);
}

function figuresOf(checkout: string): Figure[] {
  const subject = readSubject(checkout, ['src', 'test', 'bench']);
  return MEASURES.flatMap((measure) => measure(subject));
}

function tableOf(columns: readonly Figure[][]): string[] {
  const names = columns[0]!.map(({ name }) => name);
  const width = Math.max(...names.map(({ length }) => length));
  return names.map((name, row) => {
    const cells = columns.map((figures) => cellOf(figures[row]).padStart(9));
    return `${name.padEnd(width)}${cells.join('')}`;
  });
}

function cellOf(figure: Figure | undefined): string {
  return figure?.value === undefined ? '–' : `${figure.value}${figure.unit ?? ''}`;
}

/** What was counted in the last of the checkouts. */
function listsOf(figures: readonly Figure[]): string[] {
  return figures.flatMap(({ name, places }) =>
    places?.length ? ['', `${name}:`, ...places.map((at) => `  ${at}`)] : [],
  );
}

main();
