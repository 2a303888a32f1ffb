import type { Plan, PlannedNode } from '../../../engine/definition/plan.ts';

/** What runs of one shape went through. */
export interface Walked {
  readonly plan: Plan;
  /** Nodes that came to a good end. */
  readonly done: ReadonlySet<string>;
}

/** Runs that all went the same way. */
interface Walkers {
  readonly workflowId: string;
  readonly runs: number;
}

/** A path of node types that runs of several workflows take. */
export interface RecurringPath<W> {
  readonly types: readonly string[];
  readonly support: number;
  readonly walkers: readonly W[];
}

const TYPES_MIN = 3;
const TYPES_MAX = 24;
/** Where workflows begin and end is no step; a path has at least two that are. */
const FRAMES: readonly string[] = ['core.start', 'core.end'];
const STEPS_MIN = 2;
const WORKFLOWS_MIN = 2;
/** Paths that are looked at in one shape: a workflow of many branches has more than anybody could name. */
const PATHS_PER_SHAPE_MAX = 4_000;
/** And in all of them together. */
const PATHS_MAX = 500_000;

/**
 * Counts who takes which path of at least three node types. A path follows edges without a condition: a condition is a
 * decision of its own workflow. Inside, a path is a word with a letter for each type, which is quick to compare.
 */
export class PathCount<W extends Walkers> {
  readonly #letters = new Map<string, string>();
  readonly #walkersOf = new Map<string, W[]>();
  #looked = 0;

  add(walkers: W, walked: Walked): void {
    if (this.#looked < PATHS_MAX) for (const word of this.#wordsOf(walked)) this.#note(word, walkers);
  }

  /** Paths that enough runs of at least two workflows take, none of them part of a longer one. */
  recurring(supportMin: number): RecurringPath<W>[] {
    const found = [...this.#walkersOf].flatMap(([word, walkers]): Taken<W>[] => {
      const support = walkers.reduce((sum, { runs }) => sum + runs, 0);
      const workflows = new Set(walkers.map(({ workflowId }) => workflowId));
      return support < supportMin || workflows.size < WORKFLOWS_MIN ? [] : [{ word, support, walkers }];
    });
    const types = [...this.#letters.keys()];
    return longestOnly(found).map(({ word, support, walkers }) => ({
      types: [...word].map((letter) => types[letter.codePointAt(0)! - FIRST_LETTER]!),
      support,
      walkers,
    }));
  }

  #note(word: string, walkers: W): void {
    const known = this.#walkersOf.get(word);
    if (known) known.push(walkers);
    else this.#walkersOf.set(word, [walkers]);
  }

  /** Each once. */
  #wordsOf(walked: Walked): Set<string> {
    const words = new Set<string>();
    let looked = 0;
    const extend = (last: PlannedNode, word: string, length: number, steps: number): void => {
      if (++looked > PATHS_PER_SHAPE_MAX) return;
      if (length >= TYPES_MIN && steps >= STEPS_MIN) words.add(word);
      if (length === TYPES_MAX) return;
      for (const next of followersOf(last, walked)) {
        extend(next, word + this.#letterOf(next), length + 1, steps + stepsIn(next));
      }
    };
    for (const first of walked.plan.nodes) {
      if (walked.done.has(first.node.id)) extend(first, this.#letterOf(first), 1, stepsIn(first));
    }
    this.#looked += looked;
    return words;
  }

  #letterOf({ node: { typeId } }: PlannedNode): string {
    const letter = this.#letters.get(typeId) ?? String.fromCodePoint(FIRST_LETTER + this.#letters.size);
    this.#letters.set(typeId, letter);
    return letter;
  }
}

/** Letters beyond the basic plane are whole characters, however many types there are. */
const FIRST_LETTER = 0x10000;

function stepsIn({ node }: PlannedNode): number {
  return FRAMES.includes(node.typeId) ? 0 : 1;
}

function followersOf({ outgoing }: PlannedNode, { plan, done }: Walked): PlannedNode[] {
  return outgoing
    .filter(({ condition, isLoopback }) => !condition && !isLoopback)
    .map(({ target }) => plan.nodes[target]!)
    .filter(({ node }) => done.has(node.id));
}

/** The nodes of a path in a workflow that has it. */
export function nodesAlong(types: readonly string[], walked: Walked): readonly string[] | undefined {
  const walk = (at: PlannedNode, index: number): readonly string[] | undefined => {
    if (at.node.typeId !== types[index]) return undefined;
    if (index === types.length - 1) return [at.node.id];
    for (const next of followersOf(at, walked)) {
      const rest = walk(next, index + 1);
      if (rest) return [at.node.id, ...rest];
    }
    return undefined;
  };
  for (const first of walked.plan.nodes) {
    const nodeIds = walked.done.has(first.node.id) ? walk(first, 0) : undefined;
    if (nodeIds) return nodeIds;
  }
  return undefined;
}

/** A word, and who takes that path. */
interface Taken<W> {
  readonly word: string;
  readonly support: number;
  readonly walkers: readonly W[];
}

/** The longest first; of two that are equally long, the one with more behind it. */
function longestOnly<W>(found: readonly Taken<W>[]): Taken<W>[] {
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

/** A path that is longer than any we look at is met as many that are each moved on by one: the first stands for all. */
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
