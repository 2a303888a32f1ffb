import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ROLE_SCOPES, ROLES, SCOPES } from '../src/protocol/trust/scopes.ts';

/** Goal: the page says what each role may do. Method: the table of roles is read, and held against the scopes. */

const page = readFileSync(new URL('../docs/authorization.md', import.meta.url), 'utf8');
const [, table = ''] = /^\| To \| viewer .*\n\|[-:|]+\n((?:\|.*\n)+)/m.exec(page) ?? [];
const rows = table
  .trim()
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, task = '', ...cells]) => ({
    task,
    marks: cells.slice(0, ROLES.length),
    scopes: [...(cells[ROLES.length] ?? '').matchAll(/`([^`]+)`/g)].map(([, scope]) => scope!),
  }));

describe('the table of roles', () => {
  it('has every scope once', () => {
    expect(rows.flatMap(({ scopes }) => scopes).toSorted()).toEqual(SCOPES.toSorted());
  });

  it.each(rows)('is right about who may: $task', ({ marks, scopes }) => {
    const may = (role: (typeof ROLES)[number]): boolean =>
      scopes.every((scope) => (ROLE_SCOPES[role] as readonly string[]).includes(scope));
    expect(marks).toEqual(ROLES.map((role) => (may(role) ? '✓' : '–')));
  });
});
