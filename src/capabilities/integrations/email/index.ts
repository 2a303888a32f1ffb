import type { LegacyCapability as Capability } from '../../legacy.ts';
import { emailSend } from './nodes.ts';
import { mailSeam } from './smtp.ts';

/** Workflows that write to people, through the mail server of the operator. */
export const email: Capability<'email', undefined> = {
  name: 'email',
  service: () => undefined,
  nodes: () => [emailSend],
  seams: ({ runtime: { egress, clock }, settings: { mail } }) => (mail ? { mail: mailSeam(mail, egress, clock) } : {}),
};
