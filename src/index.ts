/** The main entry of the package: start a host inside your own program. */
export type { SettingName } from './config/settings.ts';
export { BadConfig, type Config, readConfig } from './config.ts';
export { type RunningHost, type System, startHost } from './host.ts';
export { realClock, realIds, realLog } from './system/real.ts';
export { VERSION } from './version.ts';
