export { type MailSettings, readMail } from './settings.ts';
