import { type FailoverReport, failoverRound } from '../test/support/failover.ts';
import { PostgresPair } from '../test/support/postgres-pair.ts';
import { KEY, startCapstan } from './servers.ts';

/**
 * What a dead database machine costs: two hosts on a primary and its synchronous standby, under load. Each round kills
 * the primary, promotes the standby, waits for everything that was accepted, and makes a new standby out of the rest.
 */

const ROUNDS = Number(process.argv[2] ?? 5);
/** `freeze` as the second argument: the primary does not answer any more, but its connections stay open. */
const isFrozen = process.argv[3] === 'freeze';

const pair = await PostgresPair.start();
const environment = { DATABASE_URL: pair.url, CAPSTAN_LEASE_MS: '5000' };
const hosts = await Promise.all([startCapstan(environment), startCapstan(environment)]);
const asked = hosts.map(({ url }) => ({ url, key: KEY }));

const told = (report: FailoverReport): string =>
  [
    `accepted ${report.accepted}, lost ${report.lost}, doubled ${report.doubled}, stuck ${report.stuck.length}`,
    `streams broken ${report.brokenStreams}, answers 503 ${report.unavailable}, other ${report.otherFailures.length}`,
    `promoted after ${report.secondsToPromotion.toFixed(1)} s, writes after ${report.secondsToWrites.toFixed(1)} s`,
  ].join('; ');

let isSound = true;
try {
  for (let round = 1; round <= ROUNDS; round++) {
    const report = await failoverRound(pair, asked, { isFrozen });
    const { lost, doubled, stuck, brokenStreams, otherFailures } = report;
    isSound &&= lost + doubled + stuck.length + brokenStreams + otherFailures.length === 0;
    console.log([`round ${round}: ${told(report)}`, ...stuck, ...otherFailures].join('\n'));
    if (round < ROUNDS) await pair.addStandby();
  }
} finally {
  await Promise.all(hosts.map((host) => host.stop()));
  await pair.remove();
}
process.exit(isSound ? 0 : 1);
