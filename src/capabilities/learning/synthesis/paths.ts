import type { Plan, PlannedNode } from '../../../engine/definition/plan.ts';

/** What runs of one shape did. */
export interface RunTrace {
  readonly plan: Plan;
  /** Nodes that completed. */
  readonly done: ReadonlySet<string>;
}

/** Runs of one workflow with the same shape. */
interface TracedRuns {
  readonly workflowId: string;
  readonly runs: number;
}

/** A path of node types that occurs in runs of several workflows. */
export interface RecurringPath<W> {
  readonly types: readonly string[];
  readonly support: number;
  readonly runGroups: readonly W[];
}

const TYPES_MIN = 3;
const TYPES_MAX = 24;
/** The first and last nodes of workflows are not steps; a path must have at least two steps. */
const FRAMES: readonly string[] = ['core.start', 'core.end'];
const STEPS_MIN = 2;
const WORKFLOWS_MIN = 2;
/** Paths that are followed in one shape: a workflow with many branches has too many to follow all. */
const PATHS_PER_SHAPE_MAX = 4_000;
/** Paths that are followed in all shapes together. */
const PATHS_MAX = 500_000;

/**
 * Counts the runs that take each path of at least three node types. A path follows edges without a condition: a condition
 * is a decision of its own workflow. Internally a path is a word with a letter for each type, which is fast to compare.
 */
export class PathCounter<W extends TracedRuns> {
  readonly #letters = new Map<string, string>();
  readonly #groupsOf = new Map<string, W[]>();
  #followed = 0;

  /** Counts the paths of runs with one shape. */
  add(group: W, trace: RunTrace): void {
    if (this.#followed < PATHS_MAX) for (const word of this.#wordsOf(trace)) this.#note(word, group);
  }

  /** Paths that enough runs of at least two workflows take. A path that is part of a longer one is left out. */
  recurring(supportMin: number): RecurringPath<W>[] {
    const found = [...this.#groupsOf].flatMap(([word, runGroups]): FoundWord<W>[] => {
      const support = runGroups.reduce((sum, { runs }) => sum + runs, 0);
      const workflows = new Set(runGroups.map(({ workflowId }) => workflowId));
      return support < supportMin || workflows.size < WORKFLOWS_MIN ? [] : [{ word, support, runGroups }];
    });
    const types = [...this.#letters.keys()];
    return longestPaths(found).map(({ word, support, runGroups }) => ({
      types: [...word].map((letter) => types[letter.codePointAt(0)! - FIRST_LETTER]!),
      support,
      runGroups,
    }));
  }

  #note(word: string, group: W): void {
    const known = this.#groupsOf.get(word);
    if (known) known.push(group);
    else this.#groupsOf.set(word, [group]);
  }

  /** The distinct words of a trace. */
  #wordsOf(trace: RunTrace): Set<string> {
    const words = new Set<string>();
    let followed = 0;
    const extend = (last: PlannedNode, word: string, length: number, steps: number): void => {
      if (++followed > PATHS_PER_SHAPE_MAX) return;
      if (length >= TYPES_MIN && steps >= STEPS_MIN) words.add(word);
      if (length === TYPES_MAX) return;
      for (const next of followersOf(last, trace)) {
        extend(next, word + this.#letterOf(next), length + 1, steps + stepsIn(next));
      }
    };
    for (const first of trace.plan.nodes) {
      if (trace.done.has(first.node.id)) extend(first, this.#letterOf(first), 1, stepsIn(first));
    }
    this.#followed += followed;
    return words;
  }

  #letterOf({ node: { typeId } }: PlannedNode): string {
    const letter = this.#letters.get(typeId) ?? String.fromCodePoint(FIRST_LETTER + this.#letters.size);
    this.#letters.set(typeId, letter);
    return letter;
  }
}

/** Code points beyond the basic plane, so that there is one for every type. */
const FIRST_LETTER = 0x10000;

function stepsIn({ node }: PlannedNode): number {
  return FRAMES.includes(node.typeId) ? 0 : 1;
}

function followersOf({ outgoing }: PlannedNode, { plan, done }: RunTrace): PlannedNode[] {
  return outgoing
    .filter(({ condition, isLoopback }) => !condition && !isLoopback)
    .map(({ target }) => plan.nodes[target]!)
    .filter(({ node }) => done.has(node.id));
}

/** The nodes along a path in a workflow that has it. */
export function nodesAlong(types: readonly string[], trace: RunTrace): readonly string[] | undefined {
  const walk = (at: PlannedNode, index: number): readonly string[] | undefined => {
    if (at.node.typeId !== types[index]) return undefined;
    if (index === types.length - 1) return [at.node.id];
    for (const next of followersOf(at, trace)) {
      const rest = walk(next, index + 1);
      if (rest) return [at.node.id, ...rest];
    }
    return undefined;
  };
  for (const first of trace.plan.nodes) {
    const nodeIds = trace.done.has(first.node.id) ? walk(first, 0) : undefined;
    if (nodeIds) return nodeIds;
  }
  return undefined;
}

/** A word, and the runs that take its path. */
interface FoundWord<W> {
  readonly word: string;
  readonly support: number;
  readonly runGroups: readonly W[];
}

/** The longest first; of two with equal length, the one with more support. */
function longestPaths<W>(found: readonly FoundWord<W>[]): FoundWord<W>[] {
  const ranked = found.toSorted(
    (a, b) => b.word.length - a.word.length || b.support - a.support || (a.word < b.word ? -1 : 1),
  );
  const longest = ranked.map(({ word }) => [...word]).filter(({ length }) => length === TYPES_MAX);
  const shifts = new Shifts(longest);
  const covered = new Set<string>();
  return ranked.filter(({ word }) => {
    if (covered.has(word)) return false;
    for (const each of [word, ...shifts.of(word)]) for (const part of partsOf(each)) covered.add(part);
    return true;
  });
}

/** A path beyond the maximum length is found as many overlapping parts, each shifted by one: the first stands for all. */
class Shifts {
  readonly #byBeginning: Map<string, string[][]>;
  readonly #byEnding: Map<string, string[][]>;

  constructor(words: readonly string[][]) {
    this.#byBeginning = Map.groupBy(words, (letters) => letters.slice(0, -1).join(''));
    this.#byEnding = Map.groupBy(words, (letters) => letters.slice(1).join(''));
  }

  of(start: string): Set<string> {
    const reached = new Set<string>();
    const queue = [[...start]];
    for (let letters = queue.pop(); letters; letters = queue.pop()) {
      const after = this.#byBeginning.get(letters.slice(1).join('')) ?? [];
      const before = this.#byEnding.get(letters.slice(0, -1).join('')) ?? [];
      for (const other of [...after, ...before]) {
        const word = other.join('');
        if (reached.has(word)) continue;
        reached.add(word);
        queue.push(other);
      }
    }
    return reached;
  }
}

function* partsOf(word: string): Generator<string> {
  const letters = [...word];
  for (let length = TYPES_MIN; length <= letters.length; length++) {
    for (let first = 0; first + length <= letters.length; first++) yield letters.slice(first, first + length).join('');
  }
}
