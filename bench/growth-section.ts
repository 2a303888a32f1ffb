/** What docs/performance.md says about growth. */
import { barChart } from './bar-chart.ts';
import { GROWTH_MAX, type Growth, ratiosOf } from './growth.ts';
import type { GrowthReport } from './growth-report.ts';
import { median, spread } from './statistics.ts';
import { P99_MAX_MS, STREAM_MAX_KB, type Streams } from './subscribers.ts';
import { table } from './table.ts';
import { RECOVERY_MAX_S, type Recovery } from './waiting.ts';

const grouped = (value: number): string => value.toLocaleString('en');

/** The plot of the section. */
export function growthPlot({ growths, store }: GrowthReport): string {
  const bars = growths.map((growth) => {
    const ratios = ratiosOf(growth);
    const [least, middle, most] = [Math.min(...ratios), median(ratios), Math.max(...ratios)];
    const label = `${growth.what}, ${grouped(growth.few.size)} to ${grouped(growth.many.size)}`;
    return { label, least, middle, most, isOwn: true };
  });
  return barChart(`Cost of each with many, relative to few, on ${store}`, bars, { digits: 2, limit: GROWTH_MAX });
}

/** The lines of the section, below a heading of its own. */
export function growthSection(report: GrowthReport, plot: string): string[] {
  return [
    `## Growth${report.store === 'SQLite' ? '' : ` on ${report.store}`}`,
    '',
    `Ten times as much should cost at most ${GROWTH_MAX * 10} times as much. So with many, each costs at most ${GROWTH_MAX} times what it costs`,
    'with few. Cost is processor time of the host and its database.',
    '',
    verdict(report),
    '',
    `![Cost of each with many, relative to few](performance/${plot})`,
    '',
    ...table([
      ['', 'few', 'many', 'cost of each', 'with few, µs', 'with many, µs', 'many relative to few'],
      ...report.growths.map(row),
    ]),
    '',
    ...figures(report),
    ...method(report),
  ];
}

/** Says whether the target is met, and where it is not. */
function verdict({ growths }: GrowthReport): string {
  const above = growths.filter((growth) => median(ratiosOf(growth)) > GROWTH_MAX);
  if (above.length === 0) return `All ${growths.length} are within that.`;
  const named = above.map((growth) => `${growth.what} (${median(ratiosOf(growth)).toFixed(2)})`);
  return `${growths.length - above.length} of ${growths.length} are within that. Above it: ${named.join(', ')}.`;
}

function row(growth: Growth): string[] {
  const { what, each, few, many } = growth;
  const sizes = [few, many].map(({ size }) => grouped(size));
  return [what, ...sizes, each, microseconds(few.cpuUs), microseconds(many.cpuUs), spread(ratiosOf(growth), 2)];
}

function microseconds(values: readonly number[]): string {
  return spread(values, median(values) < 10 ? 2 : 0);
}

/** The figures with a bound of their own, of those that were measured. */
function figures({ recovery, streams }: GrowthReport): string[] {
  const rows = [...(recovery ? [recoveryRow(recovery)] : []), ...(streams ? streamRows(streams) : [])];
  return rows.length === 0 ? [] : [...table([['', 'measured', 'wanted'], ...rows]), ''];
}

function recoveryRow({ runs, seconds, cpuUs }: Recovery): string[] {
  return [
    `${grouped(runs)} runs under way at a kill: from the new start until all have ended`,
    `${seconds.toFixed(2)} s, ${cpuUs.toFixed(0)} µs of processor for each`,
    `under ${RECOVERY_MAX_S} s`,
  ];
}

function streamRows({ subscribers, p50Ms, p99Ms, kbEach }: Streams): string[][] {
  return [
    [
      `${grouped(subscribers)} subscribers of one run: until a reader has an event`,
      `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`,
      `p99 under ${P99_MAX_MS} ms`,
    ],
    ['memory for each idle stream', `${kbEach.toFixed(1)} kB`, `under ${STREAM_MAX_KB} kB`],
  ];
}

function method(report: GrowthReport): string[] {
  const { store, rounds, growths, machine, fdatasyncMs, othersCores, commit, measuredAt } = report;
  const isDefault = store === 'SQLite';
  const most = Math.max(rounds, ...growths.map(({ few }) => few.cpuUs.length));
  return [
    `- ${rounds} rounds${most > rounds ? `, ${most} of tenants` : ''}. In each, few and many are measured in turn on the same host, after a round that does not count.`,
    '  Medians of the rounds, with the least and the most in brackets; the ratio is that of each round.',
    '- Lists and summaries have two hosts, one with few runs and one with many, whose history was written past the host.',
    '- Tenants: the runs stay the same in number. Lists are kept by tenant, so runs of many tenants that are stored together',
    '  touch more pages of the indexes than runs of one, up to the number of runs in a transaction.',
    `- Others used ${othersCores.toFixed(2)} cores meanwhile.`,
    `- Machine: ${machine}; a flushed page takes ${fdatasyncMs.toFixed(2)} ms.`,
    `- Commit ${commit}, ${measuredAt.slice(0, 10)}.`,
    '',
    `To repeat it: \`npm run bench -- growth${isDefault ? '' : ' --postgres'}\`; a name such as \`steps\` in place of \`growth\` measures one of them.`,
  ];
}
