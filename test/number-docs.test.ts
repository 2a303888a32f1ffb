import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { compilePort } from '../src/engine/expressions/condition.ts';

/** Goal: the page says what numbers do in expressions. Method: each row of its table is evaluated. */

const page = readFileSync(new URL('../docs/workflows.md', import.meta.url), 'utf8');
const [, table = ''] = /^\| Expression, if `amount` is 7 .*\n\|[-|]+\n((?:\|.*\n)+)/m.exec(page) ?? [];
const rows = [...table.matchAll(/^\| `([^`]+)` \| `([^`]+)` \|/gm)].map(([, text, result]) => ({ text, result }));
const scope = { variables: { amount: 7, list: [1, 2, 3], text: '7' }, inputs: {}, nodes: {} };

describe('the table of numbers in expressions', () => {
  it('has rows', () => expect(rows).toHaveLength(7));

  it.each(rows)('is right: $text is $result', ({ text, result }) => {
    expect(JSON.stringify(compilePort(text!)(scope))).toBe(result);
  });
});
