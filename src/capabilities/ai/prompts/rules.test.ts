import { describe, expect, it } from 'vitest';
import type { PromptTemplate } from '../../../protocol/ai/prompts.ts';
import type { KnownVersion } from './records.ts';
import { checkSuccession, checkTemplate, VERSIONS_MAX } from './rules.ts';

describe('a template', () => {
  const given: PromptTemplate = { templateId: 'a', version: '1.0.0', kind: 'user', text: 'Hello {{who}}' };

  it('may be any text with any variables', () => {
    expect(checkTemplate(given)).toBeUndefined();
    const variables: PromptTemplate['variables'] = [
      { name: 'who', type: 'array', required: false, defaultValue: [1] },
      { name: 'secret', type: 'string', required: true, source: 'secret', defaultValue: null },
    ];
    expect(checkTemplate({ ...given, text: 'password: {{secret}}', variables })).toBeUndefined();
  });

  it.each<[string, Partial<PromptTemplate>]>([
    ['text', { text: 'ü'.repeat(32_769) }],
    ['text', { text: `token ghp_${'a'.repeat(36)}` }],
    ['variables[0].defaultValue', { variables: [{ name: 'a', type: 'number', required: false, defaultValue: '1' }] }],
    [
      'variables[2].name',
      { variables: ['a', 'b', 'a'].map((name) => ({ name, type: 'string' as const, required: true })) },
    ],
  ])('is refused for its %s', (path, more) => {
    expect(checkTemplate({ ...given, ...more })).toMatchObject({
      refused: 'validation_error',
      details: { fields: [{ path }] },
    });
  });
});

describe('a version', () => {
  const known = (version: string, more: Partial<KnownVersion> = {}): KnownVersion => ({
    version,
    digest: version,
    created_at: 0,
    removed_at: null,
    ...more,
  });
  const gone = { removed_at: 5 };
  const follows = (version: string, ...before: KnownVersion[]): boolean =>
    checkSuccession({ version, digest: version }, before) === undefined;

  it('must be later than the latest', () => {
    expect(follows('1.0.0')).toBe(true);
    expect(follows('1.10.0', known('1.9.0'))).toBe(true);
    expect(follows('1.9.0', known('1.10.0'))).toBe(false);
    expect(follows('1.0.0', known('1.0.0'))).toBe(false);
    expect(follows('1.0.0+b', known('1.0.0+a'))).toBe(false);
  });

  it('may be earlier than a removed one, or be restored with the content that it had', () => {
    expect(follows('1.0.0', known('2.0.0', gone))).toBe(true);
    expect(follows('1.0.0', known('1.0.0', gone))).toBe(true);
    expect(follows('1.0.0', known('1.0.0', { ...gone, digest: 'other' }))).toBe(false);
    expect(follows('1.0.0', known('2.0.0'), known('1.0.0', gone))).toBe(false);
  });

  it('is refused with the latest version in the details', () => {
    expect(checkSuccession({ version: '1.0.0', digest: 'd' }, [known('2.0.0'), known('1.0.0')])).toMatchObject({
      refused: 'conflict',
      details: { latest: '2.0.0' },
    });
  });

  it('is refused when the template has too many', () => {
    const many = Array.from({ length: VERSIONS_MAX }, (_, index) => known(`1.0.${VERSIONS_MAX - index}`));
    expect(follows('2.0.0', ...many.slice(1))).toBe(true);
    expect(follows('2.0.0', ...many)).toBe(false);
  });
});
