import { describe, expect, it } from 'vitest';
import { configProblems, effectsOf, run } from '../../../../test/support/node-context.ts';
import { addressFrom, type MailRequest } from '../../../runtime/effects/mail.ts';
import type { Outcome } from '../../../runtime/node-type.ts';

const TYPE = 'core.openwop.integration.email-send';
const CONFIG = { from: 'Alerts <alerts@example.com>' };
const INPUTS = { to: 'ann@example.com', subject: 'Hello', text: 'How are you?' };
const RESULT = { sent: true, messageId: '<1@example.com>', provider: 'smtp', idempotencyKey: '1' };

async function sent(inputs: object, config: object = CONFIG): Promise<{ mail?: MailRequest; outcome: Outcome }> {
  let mail: MailRequest | undefined;
  const effects = effectsOf({
    mail: async (asked) => {
      mail = asked;
      return RESULT;
    },
  });
  const outcome = await run(TYPE, { config: { ...config }, inputs: { ...inputs }, effects });
  return mail ? { mail, outcome } : { outcome };
}

describe(TYPE, () => {
  it('sends one message to those it is told', async () => {
    const inputs = { ...INPUTS, cc: ['Bo <bo@example.com>', 'cy@example.com'], bcc: [], html: '<p>How are you?</p>' };
    const { mail, outcome } = await sent(inputs, { ...CONFIG, replyTo: 'desk@example.com', fallbackOnFailure: true });
    expect(mail).toEqual({
      from: { name: 'Alerts', address: 'alerts@example.com' },
      replyTo: { address: 'desk@example.com' },
      to: [{ address: 'ann@example.com' }],
      cc: [{ name: 'Bo', address: 'bo@example.com' }, { address: 'cy@example.com' }],
      bcc: [],
      subject: 'Hello',
      text: 'How are you?',
      html: '<p>How are you?</p>',
      isTolerant: true,
    });
    expect(outcome).toEqual({ done: { outputs: RESULT } });
  });

  it.each([
    ['nobody', { to: [] }],
    ['no address', { to: 'ann' }],
    ['an address that is none', { cc: [7] }],
    ['two addresses in one', { to: 'ann@example.com, bo@example.com' }],
    ['another header in an address', { to: 'ann@example.com\r\nBcc: bo@example.com' }],
    ['another header in a name', { to: 'Ann\r\nBcc: x <ann@example.com>' }],
    ['another header in the subject', { subject: 'Hello\r\nBcc: bo@example.com' }],
    ['a subject of many lines', { subject: 'Hello\u2028there' }],
    ['no subject', { subject: undefined }],
    ['nothing to say', { text: '' }],
    ['a body that is no text', { html: { a: 1 } }],
    ['a body that is a book', { text: 'x'.repeat(262_145) }],
    ['everybody', { bcc: Array.from({ length: 50 }, (_, index) => `a${index}@example.com`) }],
  ])('refuses %s', async (_what, inputs) => {
    const { mail, outcome } = await sent({ ...INPUTS, ...inputs });
    expect(mail).toBeUndefined();
    expect(outcome).toMatchObject({ failed: { code: 'validation_error', retryable: false } });
  });

  it('is refused with a definition that has no sender, or another way to send', () => {
    expect(configProblems(TYPE, CONFIG)).toEqual([]);
    expect(configProblems(TYPE, { from: 'nobody' })).toEqual(['.from']);
    expect(configProblems(TYPE, { ...CONFIG, replyTo: 'x\n@example.com' })).toEqual(['.replyTo']);
    expect(configProblems(TYPE, { ...CONFIG, provider: 'pigeon' })).toEqual(['.provider']);
    expect(configProblems(TYPE, {})).not.toEqual([]);
  });
});

describe('an address', () => {
  it.each([
    ['a@b', { address: 'a@b' }],
    [' a.b+c@d-e.example ', { address: 'a.b+c@d-e.example' }],
    ['"Ann, the first" <a@b.example>', { name: 'Ann, the first', address: 'a@b.example' }],
    ['<a@b.example>', { address: 'a@b.example' }],
    ['Ann <a@b.example> <c@d.example>', undefined],
    ['a@b@c.example', undefined],
    ['a b@c.example', undefined],
    ['a@-b.example', undefined],
    ['a@b..example', undefined],
    ['@b.example', undefined],
    [`${'a'.repeat(65)}@b.example`, undefined],
    [`a@${'b'.repeat(64)}.example`, undefined],
    ['', undefined],
  ])('%j is %j', (text, address) => {
    expect(addressFrom(text)).toEqual(address);
  });
});
