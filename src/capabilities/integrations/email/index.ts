import { defineCapability } from '../../capability.ts';
import { emailSend } from './nodes.ts';
import { emailSettings } from './settings.ts';
import { mailSeam } from './smtp.ts';

/** E-mail of workflows, through the mail server that the operator has configured. */
export const email = defineCapability({
  name: 'email',
  settings: emailSettings,
  nodes: () => [emailSend],
  build: ({ runtime: { egress, clock } }, _needs, { mail }) => ({
    seams: mail ? { mail: mailSeam(mail, egress, clock) } : {},
  }),
});
