import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import type { GrowthReport } from '../../bench/growth-report.ts';
import type { PeerReport } from '../../bench/peers.ts';
import type { StartReport } from '../../bench/start-section.ts';
import { scratchFolder } from '../support/scratch.ts';

/**
 * Goal: the harness that measures Capstan beside others, and how its cost grows, still works when somebody needs it.
 * Method: it measures the limit program, Capstan and a few workloads for a moment, and writes its page into a folder of
 * the test. How fast they are is not looked at.
 */

const MAIN = join(import.meta.dirname, '../../bench/main.ts');
const docs = mkdtempSync(join(scratchFolder(), 'capstan-performance-'));
afterAll(() => rmSync(docs, { recursive: true }));

describe('the harness with peers', () => {
  it('measures, and writes a page with table, plots, method and machine', async () => {
    const only = ['--only', 'limit, two', '--only', 'Capstan, SQLite'];
    const short = ['--rounds', '1', '--seconds', '0.2', '--patience', '0', '--docs', docs];
    await promisify(execFile)(process.execPath, [MAIN, 'peers', ...only, ...short]);
    const report = JSON.parse(readFileSync(join(docs, 'performance/peers.json'), 'utf8')) as PeerReport;
    expect(report.peers.map(({ name }) => name)).toEqual(['limit, two commits', 'Capstan, SQLite']);
    for (const { runsPerSecond, aloneP50Ms, cpuPerRunUs } of report.peers) {
      expect([runsPerSecond[0], aloneP50Ms[0]].every((figure) => figure! > 0)).toBe(true);
      // Counted in ticks of the kernel, and this was hardly longer than one.
      expect(cpuPerRunUs).toEqual([expect.any(Number)]);
    }
    const page = readFileSync(join(docs, 'performance.md'), 'utf8');
    expect(page).toMatch(/^\| Capstan, SQLite \| \d+ \(\d+ to \d+\) \|/m);
    expect(page).toContain(report.machine);
    expect(page).toContain(report.commit);
    const plots = readdirSync(join(docs, 'performance')).filter((name) => name.endsWith('.svg'));
    expect(plots).toEqual(['alone.svg', 'throughput.svg']);
    for (const plot of plots) expect(page).toContain(`(performance/${plot})`);
  });

  it('measures growth, and adds it to the page', async () => {
    const short = ['--only', 'retries', '--rounds', '1', '--part', '0.01', '--patience', '0', '--docs', docs];
    await promisify(execFile)(process.execPath, [MAIN, 'growth', ...short]);
    const report = JSON.parse(readFileSync(join(docs, 'performance/growth.json'), 'utf8')) as GrowthReport;
    expect(report.growths.map(({ few, many }) => [few.size, many.size])).toEqual([[1, 10]]);
    const page = readFileSync(join(docs, 'performance.md'), 'utf8');
    expect(page).toMatch(/^\| idempotency keys \| 1 \| 10 \| retry \|/m);
    expect(page).toContain('(performance/growth.svg)');
    expect(page).toMatch(/^\| Capstan, SQLite \|/m);
    expect(readFileSync(join(docs, 'performance/growth.svg'), 'utf8')).toContain('>limit 1.1<');
  });

  it('measures starts, rests and sizes, and adds them to the page', async () => {
    const short = ['--rounds', '1', '--rest', '0.1', '--runs', '20', '--patience', '0', '--built', '--docs', docs];
    await promisify(execFile)(process.execPath, [MAIN, 'start', ...short]);
    const { figures } = JSON.parse(readFileSync(join(docs, 'performance/start.json'), 'utf8')) as StartReport;
    for (const values of Object.values(figures)) expect(values).toEqual([expect.any(Number)]);
    expect(figures.installedMb[0]).toBeGreaterThan(1);
    const page = readFileSync(join(docs, 'performance.md'), 'utf8');
    expect(page).toMatch(/^\| `capstan runs list`, ms \| \d+ \| under 150 \|$/m);
    expect(page).toMatch(/^\| idempotency keys \|/m);
  });
});
