/** The main entry of the package: start a host inside your own program. */
export { BadConfig, type Config, readConfig, type SettingTexts } from './config.ts';
export { type RunningHost, type System, startHost } from './host.ts';
export { CorrectedClock } from './system/clock.ts';
export { realClock, realIds } from './system/real.ts';
export { realLog } from './system/real-log.ts';
export { VERSION } from './version.ts';
