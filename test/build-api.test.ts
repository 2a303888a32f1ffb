import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { buildApi } from '../scripts/build-api.ts';
import * as build from '../src/build/index.ts';

it('the reference of capstan/build is that of the sources: node scripts/build-api.ts', () => {
  const page = readFileSync(new URL('../docs/build-api.md', import.meta.url), 'utf8');
  expect(page).toBe(buildApi());
  const missing = Object.keys(build).filter((name) => name !== 'Type' && !page.includes(`### \`${name}\``));
  expect(missing).toEqual([]);
});
