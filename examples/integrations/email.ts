import { defineNode, defineWorkflow, Type } from 'capstan/build';

/** What somebody wrote, without what they quote. Services that parse e-mails often do this, too. */
export const readEmail = defineNode({
  typeId: 'email.read',
  description: 'Takes the new part out of an e-mail.',
  safety: 'pure',
  inputs: Type.Object({ from: Type.String(), subject: Type.String(), text: Type.String() }),
  outputs: Type.Object({ from: Type.String(), topic: Type.String(), said: Type.String() }),
  run: ({ inputs: { from, subject, text } }) => {
    const lines = text.replaceAll('\r\n', '\n').split('\n');
    const quote = lines.findIndex((line) => /^(>|On .* wrote:$|-- $)/.test(line));
    const own = quote === -1 ? lines : lines.slice(0, quote);
    const topic = subject.replace(/^((re|fwd?|aw|wg):\s*)+/i, '');
    return { from: from.toLowerCase(), topic, said: own.join('\n').trim() };
  },
});

/**
 * A run for each e-mail. The service that receives them (here Postmark) posts them as JSON to the URL of this trigger; it
 * does not sign, so the URL is the secret. It retries until it gets an answer, which is why each message has one run.
 */
export const onEmail = defineWorkflow(
  {
    id: 'on-email',
    name: 'An e-mail has arrived',
    variables: { from: Type.String(), subject: Type.String(), text: Type.String() },
    triggers: [
      {
        id: 'received',
        type: 'webhook',
        config: {
          scheme: 'path',
          filter: "body.MessageStream == 'inbound'",
          deliveryId: 'body.MessageID',
          inputs: { from: 'body.FromFull.Email', subject: 'body.Subject', text: 'body.TextBody' },
        },
      },
    ],
  },
  ({ node, variables }) => {
    node('email', readEmail, { inputs: { from: variables.from, subject: variables.subject, text: variables.text } });
  },
);
