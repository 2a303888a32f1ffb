import { describe, expect, it } from 'vitest';
import { outputsOf, run } from '../../../../test/support/node-context.ts';

const TYPE = 'core.openwop.data.string-format';

describe(TYPE, () => {
  it('fills a template from its context', () => {
    const inputs = {
      template: 'Hello {{ user.name }}, {{missing}}!',
      context: { user: { name: 'Ada' } },
      user: { name: 'Bob' },
    };
    expect(outputsOf(TYPE, { inputs })).toEqual({ text: 'Hello Ada, !' });
  });

  it('fills it from all its inputs where there is no context', () => {
    expect(outputsOf(TYPE, { inputs: { template: '{{name}}', name: 'Ada' } })).toEqual({ text: 'Ada' });
  });

  it.each([undefined, null, 7, ['{{x}}']])('fails on the template %j', (template) => {
    expect(run(TYPE, { inputs: { template } })).toMatchObject({
      failed: { code: 'validation_error', retryable: false },
    });
  });
});
