/** Writes docs/performance.md and its plots out of what was measured; nobody edits that page by hand. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GrowthReport } from './growth-report.ts';
import { growthPlot, growthSection } from './growth-section.ts';
import type { PeerReport } from './peers.ts';
import { peersPlots, peersSection } from './peers-section.ts';
import { type StartReport, startSection } from './start-section.ts';

/** Where the page is, unless somebody says otherwise. */
const DOCS = join(import.meta.dirname, '../docs');

/** The files of the figures, without their endings, by the store that was measured. */
const GROWTH_FILES: Record<GrowthReport['store'], string> = { SQLite: 'growth', PostgreSQL: 'growth-postgres' };

/** Writes the figures and plots of peers, and the page. */
export function writePeers(report: PeerReport, docs = DOCS): void {
  write(docs, { 'peers.json': json(report), ...peersPlots(report) });
}

/** Writes the figures and the plot of growth, and the page. */
export function writeGrowth(report: GrowthReport, docs = DOCS): void {
  const name = GROWTH_FILES[report.store];
  write(docs, { [`${name}.json`]: json(report), [`${name}.svg`]: growthPlot(report) });
}

/** Writes the figures of starting, resting and size, and the page. */
export function writeStart(report: StartReport, docs = DOCS): void {
  write(docs, { 'start.json': json(report) });
}

/** Writes files beside the figures that are there already, and the page out of all of them. */
function write(docs: string, files: Record<string, string>): void {
  mkdirSync(join(docs, 'performance'), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(docs, 'performance', name), text);
  writeFileSync(join(docs, 'performance.md'), page(docs));
}

function page(docs: string): string {
  const peers = readFigures<PeerReport>(docs, 'peers');
  const growths = Object.values(GROWTH_FILES).flatMap((name) => {
    const report = readFigures<GrowthReport>(docs, name);
    return report ? [growthSection(report, `${name}.svg`)] : [];
  });
  const start = readFigures<StartReport>(docs, 'start');
  const comment =
    '<!-- Written by `npm run bench -- peers`, `-- growth` and `-- start`. Figures are measured there, and nowhere else. -->';
  const sections = [
    ['# Performance'],
    [comment],
    ...(peers ? [peersSection(peers)] : []),
    ...growths,
    ...(start ? [startSection(start)] : []),
  ];
  return `${sections.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

function readFigures<T>(docs: string, name: string): T | undefined {
  const path = join(docs, 'performance', `${name}.json`);
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as T) : undefined;
}

function json(report: object): string {
  return `${JSON.stringify(report, null, 2)}\n`;
}
