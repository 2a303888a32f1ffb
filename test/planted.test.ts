import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PLANTED } from './planted/bugs.ts';

/** Goal: every bug of `npm run planted` can still be planted. Method: its place is looked for in the sources. */

const ROOT = join(import.meta.dirname, '..');

it.each(PLANTED.map((planted) => [planted.name, planted] as const))('can be planted: %s', (_name, { file, text }) => {
  expect(readFileSync(join(ROOT, file), 'utf8').split(text)).toHaveLength(2);
});
