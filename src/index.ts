/** The host, for programs that run one inside themselves. */
export { BadConfig, type Config, readConfig, type SettingTexts } from './config.ts';
export { type RunningHost, type System, startHost } from './host.ts';
export { realClock, realIds, realLog } from './system/real.ts';
export { VERSION } from './version.ts';
