import { differenceOf } from './difference.ts';
import type { Recording } from './recording.ts';
import { separateTexts } from './texts.ts';

/** A text for people that reads differently in the two checkouts. */
export interface Reworded {
  readonly place: string;
  readonly before: string;
  readonly after: string;
}

/** What the comparison of two recordings found. */
export interface Report {
  readonly documents: number;
  /** The differing lines by document; none when the checkouts behave the same. */
  readonly differences: ReadonlyMap<string, readonly string[]>;
  readonly reworded: readonly Reworded[];
}

/** Compares what two checkouts said: structure to the letter, and texts for people on their own. */
export function compareRecordings(before: Recording, after: Recording): Report {
  const names = [...new Set([...before.keys(), ...after.keys()])];
  const differences = new Map<string, readonly string[]>();
  const reworded: Reworded[] = [];
  for (const name of names) {
    const [old, now] = [separateTexts(before.get(name)), separateTexts(after.get(name))];
    const lines = differenceOf(old.structure, now.structure);
    if (lines.length > 0) differences.set(name, lines);
    for (const [path, text] of old.texts) {
      const other = now.texts.get(path);
      if (other !== undefined && other !== text)
        reworded.push({ place: `${name} ${path}`, before: text, after: other });
    }
  }
  return { documents: names.length, differences, reworded };
}

/** The report as lines for a terminal. */
export function linesOf({ documents, differences, reworded }: Report, { withTexts }: { withTexts: boolean }): string[] {
  const texts = reworded.flatMap(({ place, before, after }) => [place, `-${before}`, `+${after}`]);
  const changes = [...differences].flatMap(([name, lines]) => [`--- ${name}`, ...lines]);
  const verdict =
    differences.size === 0
      ? `structure equal in ${documents} documents; ${reworded.length} texts reworded`
      : `${differences.size} of ${documents} documents differ; ${reworded.length} texts reworded`;
  return [...changes, ...(withTexts ? texts : []), verdict];
}
