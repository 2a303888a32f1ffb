import { isForTests, readSources, type SourceFile } from './sources.ts';

/** What figures are taken of. */
export interface Subject {
  readonly checkout: string;
  /** The program: `src` without tests. */
  readonly sources: readonly SourceFile[];
  /** Everything that may import the program, tests included. */
  readonly everything: readonly SourceFile[];
}

/** One row of the table. */
export interface Figure {
  readonly name: string;
  /** Undefined where it cannot be measured here. */
  readonly value: number | undefined;
  readonly unit?: '%';
  /** What was counted, as `path:line what`, where a list makes sense. */
  readonly places?: readonly string[];
}

/** Parses the files in these folders of a checkout. */
export function readSubject(checkout: string, folders: readonly string[]): Subject {
  const everything = folders.flatMap((folder) => readSources(checkout, folder));
  return {
    checkout,
    sources: everything.filter(({ path }) => path.startsWith('src/') && !isForTests(path)),
    everything,
  };
}
