import type { Plan, PlannedNode } from '../../engine/plan.ts';

/** Runs of one version of a workflow that did the same nodes. */
export interface ShapeUse {
  readonly shape: string;
  readonly workflowId: string;
  readonly plan: Plan;
  /** Nodes that came to a good end. */
  readonly done: ReadonlySet<string>;
  readonly runs: number;
}

/** Where a path lies in a workflow: its nodes, in order. */
export interface Occurrence {
  readonly use: ShapeUse;
  readonly nodeIds: readonly string[];
}

/** A path of node types that runs of several workflows take. */
export interface RecurringPath {
  readonly types: readonly string[];
  readonly support: number;
  /** One for each shape whose runs take it. */
  readonly occurrences: readonly Occurrence[];
}

const TYPES_MIN = 3;
/** Where workflows begin and end is no step; a path has at least two that are. */
const FRAMES: readonly string[] = ['core.start', 'core.end'];
const STEPS_MIN = 2;
const TYPES_MAX = 24;
const WORKFLOWS_MIN = 2;
/** Paths that one shape may have; a workflow of many branches has more than anybody could name. */
const PATHS_PER_SHAPE_MAX = 4_000;
const PATHS_MAX = 250_000;

/**
 * Paths of at least three node types that enough runs of at least two workflows take, none of them part of a longer
 * one. A path follows edges without a condition: a condition is a decision of its own workflow.
 */
export function recurringPaths(uses: readonly ShapeUse[], supportMin: number): RecurringPath[] {
  const found = new Map<string, Occurrence[]>();
  for (const use of uses) {
    if (found.size >= PATHS_MAX) break;
    for (const [key, occurrence] of pathsOf(use)) {
      const known = found.get(key);
      if (known) known.push(occurrence);
      else found.set(key, [occurrence]);
    }
  }
  const recurring = [...found].flatMap(([key, occurrences]): RecurringPath[] => {
    const support = occurrences.reduce((sum, { use }) => sum + use.runs, 0);
    const workflows = new Set(occurrences.map(({ use }) => use.workflowId));
    if (support < supportMin || workflows.size < WORKFLOWS_MIN) return [];
    return [{ types: JSON.parse(key) as string[], support, occurrences }];
  });
  return longestOnly(recurring);
}

/** Each path of a shape once, by its types. */
function pathsOf(use: ShapeUse): Map<string, Occurrence> {
  const paths = new Map<string, Occurrence>();
  const extend = (path: readonly PlannedNode[]): void => {
    if (paths.size >= PATHS_PER_SHAPE_MAX) return;
    const types = path.map(({ node }) => node.typeId);
    if (types.length >= TYPES_MIN && types.filter((type) => !FRAMES.includes(type)).length >= STEPS_MIN) {
      const key = keyOf(types);
      if (!paths.has(key)) paths.set(key, { use, nodeIds: path.map(({ node }) => node.id) });
    }
    if (path.length === TYPES_MAX) return;
    for (const next of followersOf(path.at(-1)!, use)) extend([...path, next]);
  };
  for (const first of use.plan.nodes) if (use.done.has(first.node.id)) extend([first]);
  return paths;
}

function followersOf({ outgoing }: PlannedNode, { plan, done }: ShapeUse): PlannedNode[] {
  return outgoing
    .filter(({ condition, isLoopback }) => !condition && !isLoopback)
    .map(({ target }) => plan.nodes[target]!)
    .filter(({ node }) => done.has(node.id));
}

/** The longest first; of two that are equally long, the one with more behind it. */
function longestOnly(paths: readonly RecurringPath[]): RecurringPath[] {
  const ranked = paths.toSorted(
    (a, b) => b.types.length - a.types.length || b.support - a.support || (keyOf(a.types) < keyOf(b.types) ? -1 : 1),
  );
  const windows = ranked.filter(({ types }) => types.length === TYPES_MAX);
  const covered = new Set<string>();
  return ranked.filter((path) => {
    if (covered.has(keyOf(path.types))) return false;
    for (const part of partsOf(path.types)) covered.add(keyOf(part));
    if (path.types.length === TYPES_MAX) coverShifted(path, windows, covered);
    return true;
  });
}

/** A path that is longer than any we look at is met as many that are each moved on by one: the first stands for all. */
function coverShifted(start: RecurringPath, windows: readonly RecurringPath[], covered: Set<string>): void {
  const beginnings = Map.groupBy(windows, ({ types }) => keyOf(types.slice(0, -1)));
  const endings = Map.groupBy(windows, ({ types }) => keyOf(types.slice(1)));
  const queue = [start];
  for (let window = queue.pop(); window; window = queue.pop()) {
    const { types } = window;
    const shifted = [
      ...(beginnings.get(keyOf(types.slice(1))) ?? []),
      ...(endings.get(keyOf(types.slice(0, -1))) ?? []),
    ];
    for (const other of shifted) {
      if (covered.has(keyOf(other.types))) continue;
      for (const part of partsOf(other.types)) covered.add(keyOf(part));
      queue.push(other);
    }
  }
}

function* partsOf(types: readonly string[]): Generator<readonly string[]> {
  for (let length = TYPES_MIN; length <= types.length; length++) {
    for (let first = 0; first + length <= types.length; first++) yield types.slice(first, first + length);
  }
}

function keyOf(types: readonly string[]): string {
  return JSON.stringify(types);
}
