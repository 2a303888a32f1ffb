/** What docs/performance.md says about starting, resting and size. */
import type { Provenance } from './provenance.ts';
import { spread } from './statistics.ts';
import { table } from './table.ts';

/** One thing that is measured, and what it should stay below. */
interface Measure {
  readonly what: string;
  readonly wanted?: number;
  readonly digits: number;
}

const MEASURES = {
  readyMs: { what: 'from the start of a host until it listens, ms', wanted: 700, digits: 0 },
  memoryMb: { what: 'memory of a host at rest, MB', wanted: 110, digits: 0 },
  ownMemoryMb: { what: 'of it without files, such as the program of Node, MB', digits: 0 },
  restPercent: { what: 'processor of a host at rest, % of a core', wanted: 0.5, digits: 2 },
  versionMs: { what: '`capstan --version`, ms', wanted: 150, digits: 0 },
  listMs: { what: '`capstan runs list`, ms', wanted: 150, digits: 0 },
  installedMb: { what: 'files of an installation, without Node, MB', wanted: 60, digits: 1 },
  sqliteBytes: { what: 'database of a run of one node, SQLite, bytes', digits: 0 },
  postgresLogBytes: { what: 'write-ahead log of a run of one node, PostgreSQL, bytes', digits: 0 },
} as const satisfies Record<string, Measure>;

/** A value for each round, or one where rounds would tell nothing. */
export type StartFigures = Readonly<Record<keyof typeof MEASURES, readonly number[]>>;

/** What a start, a rest, a call and an installation cost. */
export interface StartReport extends Provenance {
  readonly figures: StartFigures;
}

/** A row for each measure: what it is, the figures and what is wanted. */
export function startRows({ figures }: StartReport): string[][] {
  return Object.entries(MEASURES).map(([name, measure]: [string, Measure]) => {
    const values = figures[name as keyof StartFigures];
    const shown = values.length > 1 ? spread(values, measure.digits) : values[0]!.toFixed(measure.digits);
    return [measure.what, shown, measure.wanted === undefined ? '' : `under ${measure.wanted}`];
  });
}

/** The lines of the section. */
export function startSection(report: StartReport): string[] {
  const { machine, commit, measuredAt } = report;
  return [
    '## Start, rest and size',
    '',
    ...table([['', 'measured', 'wanted'], ...startRows(report)]),
    '',
    '- The bundled program, as the package has it, on SQLite, after its first use on the machine. Medians of the rounds, with',
    '  the least and the most in brackets. MB are millions of bytes.',
    '- Memory is resident memory. The program file of Node is a part of it that processes share.',
    `- Machine: ${machine}.`,
    `- Commit ${commit}, ${measuredAt.slice(0, 10)}.`,
    '',
    'To repeat it: `npm run bench -- start`.',
  ];
}
