/** The host, for programs that run one inside themselves. */
export type { SettingName } from './config/settings.ts';
export { BadConfig, type Config, readConfig } from './config.ts';
export { type RunningHost, type System, startHost } from './host.ts';
export { realClock, realIds, realLog } from './system/real.ts';
export { VERSION } from './version.ts';
