import { type Static, Type } from 'typebox';
import type { ConfigProblem } from '../../../engine/definition/check.ts';
import { addressFrom, hasControls, MAIL_LIMITS, type MailAddress } from '../../../runtime/effects/mail.ts';
import { invalid, type NodeType, type Outcome } from '../../../runtime/node-type.ts';

const Config = Type.Object({
  from: Type.String({ minLength: 3, description: 'Who it is from; one of those that the operator lets send' }),
  replyTo: Type.Optional(Type.String({ minLength: 3, description: 'Where answers go' })),
  provider: Type.Optional(Type.Literal('smtp', { default: 'smtp' })),
  fallbackOnFailure: Type.Optional(
    Type.Boolean({ default: false, description: 'Goes on with `sent: false` where it cannot be sent' }),
  ),
});
type Config = Static<typeof Config>;

/** Sends one message by e-mail. */
export const emailSend: NodeType = {
  typeId: 'core.openwop.integration.email-send',
  description: 'Sends an e-mail.',
  inputs: ['to', 'cc', 'bcc', 'subject', 'text', 'html'],
  requiredInputs: ['subject'],
  outputs: () => ['sent', 'messageId', 'provider', 'idempotencyKey', 'rejected', 'error'],
  role: 'side-effect',
  config: Config,
  check: (config) => ['from', 'replyTo'].flatMap((name) => addressProblems(name, config[name])),
  run: async ({ config, inputs, effects }): Promise<Outcome> => {
    const { from, replyTo, fallbackOnFailure = false } = config as Config;
    const { subject, text, html } = inputs;
    const [to, cc, bcc] = [listOf(inputs.to), listOf(inputs.cc), listOf(inputs.bcc)];
    if (!to || !cc || !bcc) return invalid('The inputs `to`, `cc` and `bcc` take addresses, as text or lists of text.');
    const recipients = to.length + cc.length + bcc.length;
    if (recipients === 0) return invalid('There is nobody to send it to: the input `to` is empty.');
    if (recipients > MAIL_LIMITS.recipients)
      return invalid(`There are more than ${MAIL_LIMITS.recipients} recipients.`);
    if (!isSubject(subject)) {
      return invalid(`The input \`subject\` takes one line of at most ${MAIL_LIMITS.subjectCharacters} characters.`);
    }
    if (!isBody(text) || !isBody(html) || (!text && !html)) {
      return invalid(`The inputs \`text\` and \`html\` take text, at most ${MAIL_LIMITS.bodyCharacters} characters.`);
    }
    const outputs = await effects.mail({
      from: addressFrom(from)!,
      ...(replyTo === undefined ? {} : { replyTo: addressFrom(replyTo)! }),
      to,
      cc,
      bcc,
      subject,
      ...(text ? { text } : {}),
      ...(html ? { html } : {}),
      isTolerant: fallbackOnFailure,
    });
    return { done: { outputs: { ...outputs } } };
  },
};

function addressProblems(name: string, value: unknown): ConfigProblem[] {
  if (value === undefined || addressFrom(String(value))) return [];
  return [{ path: `.${name}`, message: 'is not an address such as a@example.com or Ann <a@example.com>' }];
}

/** Undefined where one of them is no address. */
function listOf(given: unknown): readonly MailAddress[] | undefined {
  const addresses = [given ?? []].flat().map((each) => (typeof each === 'string' ? addressFrom(each) : undefined));
  return addresses.includes(undefined) ? undefined : (addresses as MailAddress[]);
}

function isSubject(subject: unknown): subject is string {
  return typeof subject === 'string' && subject.length <= MAIL_LIMITS.subjectCharacters && !hasControls(subject);
}

function isBody(body: unknown): body is string | undefined {
  return body === undefined || (typeof body === 'string' && body.length <= MAIL_LIMITS.bodyCharacters);
}
