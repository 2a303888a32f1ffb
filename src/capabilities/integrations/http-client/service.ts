export type { Credential } from '../../../runtime/effects/credentials.ts';
export { readCredentials } from './settings.ts';
