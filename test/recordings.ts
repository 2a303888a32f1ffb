import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import type { Tally } from './support/recorder/recorder.ts';
import { MAPPED } from './support/recorder/table.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    recordings: string;
  }
}

/** Collects what the workers recorded, and says at the end how much of the wire was seen. */
export default function setup(project: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-recordings-'));
  project.provide('recordings', folder);
  return () => {
    console.log(summary(readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')))));
    rmSync(folder, { recursive: true, force: true });
  };
}

function summary(tallies: readonly Tally[]): string {
  const kinds = new Set(tallies.flatMap(({ answers }) => Object.keys(answers)));
  const answers = sum(tallies.flatMap((tally) => Object.values(tally.answers)));
  const mapped = MAPPED.filter((kind) => kinds.has(kind));
  const frames = sum(tallies.map((tally) => tally.frames));
  const deliveries = sum(tallies.map((tally) => tally.deliveries));
  return [
    `recorded: ${answers} answers of ${kinds.size} kinds (operation and status),`,
    `${mapped.length} of ${MAPPED.length} kinds with a published schema, ${frames} frames, ${deliveries} deliveries`,
  ].join(' ');
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
