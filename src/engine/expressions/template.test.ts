import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OutputBudget } from '../limits/output-budget.ts';
import { render as renderWithin } from './template.ts';

const render = (template: string, values: unknown): string =>
  renderWithin(template, values, new OutputBudget('The text', 10_000));

describe('a template', () => {
  it.each([
    ['Hello {{name}}!', 'Hello Ada!'],
    ['Hello {{ name }}!', 'Hello Ada!'],
    ['{{user.mail}} {{items.1}}', 'ada@example.com two'],
    ['{{count}} {{yes}} {{zero}}', '3 true 0'],
    ['{{items}} {{user}}', '["one","two"] {"mail":"ada@example.com"}'],
    ['[{{missing}}] [{{user.missing.more}}] [{{nothing}}]', '[] [] []'],
    ['{{name}}{{name}}', 'AdaAda'],
    ['no tokens', 'no tokens'],
    ['', ''],
  ])('%j becomes %j', (template, text) => {
    expect(render(template, VALUES)).toBe(text);
  });

  it.each([
    '{{ 1 + 1 }}',
    '{{name()}}',
    '{{ items[0] }}',
    '{name}',
    '{{}}',
    '{{ }}',
    '{{#if name}}',
    '{{{',
    '$name',
    '{{-name}}',
  ])('leaves invalid tokens unchanged: %s', (template) => {
    expect(render(template, VALUES)).toBe(template);
  });

  it.each(['constructor', 'constructor.name', '__proto__', 'user.toString', 'name.length'])(
    'renders nothing of a prototype: %s',
    (path) => {
      expect(render(`[{{${path}}}]`, VALUES)).toBe('[]');
    },
  );

  it('does not expand inserted values again', () => {
    expect(render('{{a}}', { a: '{{b}}', b: 'secret' })).toBe('{{b}}');
    expect(render('{{a}}', { a: '$& $1 $$' })).toBe('$& $1 $$');
  });

  it('never throws, whatever the values', () => {
    fc.assert(
      fc.property(fc.string(), fc.jsonValue(), (template, values) => {
        expect(typeof render(`${template}{{x}}{{x.y}}`, values)).toBe('string');
      }),
    );
  });
});

const VALUES = {
  name: 'Ada',
  user: { mail: 'ada@example.com' },
  items: ['one', 'two'],
  count: 3,
  yes: true,
  zero: 0,
  nothing: null,
};

describe('a template that repeats a long value', () => {
  it('is given up before the text is built', () => {
    const template = '{{a}}'.repeat(1_000);
    expect(() => render(template, { a: 'x'.repeat(1_000) })).toThrow('more than 10000 characters');
    expect(() => render(template, { a: ['x'.repeat(1_000)] })).toThrow('more than 10000 characters');
  });
});
