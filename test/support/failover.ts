import type { PostgresPair } from './postgres-pair.ts';
import { type AskedHost, ask, checkAccepted, Load } from './retrying-load.ts';

/** A round in which the primary is killed under load and its standby promoted, and what came of all that was asked. */

const RUNS = 120;
/** More answers than callers: some have waited for the database as long as a host does. */
const UNAVAILABLE = 20;
/** Longer than it takes to promote a standby: these runs wait while there is no database. */
const WAITING_MS = 4_000;

/** What came of a round. */
export interface FailoverReport {
  /** Runs that hosts have acknowledged. */
  readonly accepted: number;
  /** Of them, those that are gone. */
  readonly lost: number;
  /** Requests that made more than one run. */
  readonly doubled: number;
  /** What is wrong with runs that have not completed, or whose log has a gap. */
  readonly stuck: readonly string[];
  /** Streams that were closed before the end of their run, or that left out or repeated an event. */
  readonly brokenStreams: number;
  /** Answers that asked for patience, and all others that were no success. */
  readonly unavailable: number;
  readonly otherFailures: readonly string[];
  /** Seconds from the kill to the first run that was asked for after it; those for the promotion among them. */
  readonly secondsToWrites: number;
  readonly secondsToPromotion: number;
}

/** How a round goes. */
export interface RoundOptions {
  /** Runs that are accepted before the primary dies, and as many afterwards. */
  readonly runs?: number;
  /** Whether the primary stops to answer instead of dying, as one does whose network is cut. */
  readonly isFrozen?: boolean;
}

export async function failoverRound(
  pair: PostgresPair,
  hosts: readonly AskedHost[],
  { runs = RUNS, isFrozen = false }: RoundOptions = {},
): Promise<FailoverReport> {
  const load = new Load(hosts);
  const streams = await Promise.all(hosts.map((host) => watchWaitingRun(host)));
  load.start();
  await load.until(() => load.accepted.length >= runs);
  const killedAt = performance.now();
  const dying = pair.primary;
  if (isFrozen) dying.freeze();
  else await dying.kill();
  // Not before callers were asked for patience: whoever promotes standbys makes sure first that the primary is gone.
  await load.until(() => load.unavailable >= UNAVAILABLE);
  await pair.promote();
  const promotedAt = performance.now();
  await load.until(() => load.asked(killedAt) >= runs);
  await load.stop();
  if (isFrozen) await dying.kill();
  const { lost, doubled, stuck } = await checkAccepted(hosts, load.accepted);
  const frames = await Promise.all(streams.map(({ isWhole }) => isWhole));
  return {
    accepted: load.accepted.length + streams.length,
    ...{ lost, doubled, stuck },
    brokenStreams: frames.filter((isWhole) => !isWhole).length,
    unavailable: load.unavailable,
    otherFailures: [...load.otherFailures, ...load.unreachable],
    secondsToWrites: (load.firstAfter(killedAt) - killedAt) / 1_000,
    secondsToPromotion: (promotedAt - killedAt) / 1_000,
  };
}

/** A stream that is open all the time on a run that waits meanwhile. */
async function watchWaitingRun(host: AskedHost): Promise<{ readonly isWhole: Promise<boolean> }> {
  const body = JSON.stringify({ workflowId: 'conformance-cancellable', inputs: { delayMs: WAITING_MS } });
  const { runId } = (await (await ask(host, '/v1/runs', { method: 'POST', body })).json()) as { runId: string };
  const stream = await ask(host, `/v1/runs/${runId}/events?streamMode=debug`);
  return { isWhole: stream.text().then(isWholeLog, () => false) };
}

function isWholeLog(text: string): boolean {
  const ids = [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
  return ids.length > 0 && ids.every((id, index) => id === index) && /^event: run\.completed$/m.test(text);
}
