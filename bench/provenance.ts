import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { fdatasyncMs } from './flush.ts';
import { machine } from './processor.ts';

/** When, where and of which sources something was measured. */
export interface Provenance {
  readonly measuredAt: string;
  readonly commit: string;
  readonly machine: string;
  /** How long the disk takes to flush a page. */
  readonly fdatasyncMs: number;
}

/** What is measured now. */
export function provenance(): Provenance {
  return { measuredAt: new Date().toISOString(), commit: commit(), machine: machine(), fdatasyncMs: fdatasyncMs() };
}

function commit(): string {
  const cwd = fileURLToPath(new URL('..', import.meta.url));
  const git = (...args: string[]): string => execFileSync('git', args, { cwd, encoding: 'utf8' }).trim();
  try {
    return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', 'src', 'bench') ? ' and changes' : '');
  } catch {
    return 'unknown';
  }
}
