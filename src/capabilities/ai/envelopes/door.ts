export { Mailbox, type Reception, type SentEnvelope } from './mailbox.ts';
export { ATTEMPTS_MAX, finalFailure, type Misfit, Rounds } from './rounds.ts';
