import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { edge, line, node, workflow } from '../../../../test/support/definitions.ts';
import { makePlan } from '../../../engine/definition/plan.ts';
import type { WorkflowDefinition } from '../../../protocol/running/workflows.ts';
import { nodesAlong, PathCounter, type RecurringPath, type RunTrace } from './paths.ts';

interface Use extends RunTrace {
  readonly workflowId: string;
  readonly runs: number;
}

function use(definition: WorkflowDefinition, runs: number, done = definition.nodes.map(({ id }) => id)): Use {
  return { workflowId: definition.id, plan: makePlan(definition, 1), done: new Set(done), runs };
}

function recurringPaths(uses: readonly Use[], supportMin: number): RecurringPath<Use>[] {
  const count = new PathCounter<Use>();
  for (const each of uses) count.add(each, each);
  return count.recurring(supportMin);
}

/** A workflow of these types, one after the other. */
function row(...types: string[]): WorkflowDefinition {
  const nodes = types.map((type, index) => node(`n${index}`, type));
  return workflow(nodes, line(...nodes.map(({ id }) => id)));
}

const typesOf = (uses: readonly Use[], supportMin = 3): string[] =>
  recurringPaths(uses, supportMin).map(({ types }) => types.join(' '));

describe('a path that recurs', () => {
  it('is the longest that runs of several workflows have in common', () => {
    const uses = [use(row('x', 'a', 'b', 'c', 'd', 'y'), 2), use(row('a', 'b', 'c', 'd'), 1)];
    expect(recurringPaths(uses, 3)).toMatchObject([{ types: ['a', 'b', 'c', 'd'], support: 3 }]);
  });

  it.each<[string, Use[]]>([
    ['is in one workflow alone', [use(row('a', 'b', 'c'), 100)]],
    ['has too few runs', [use(row('a', 'b', 'c'), 1), use(row('a', 'b', 'c'), 1)]],
    ['is short', [use(row('a', 'b', 'x'), 9), use(row('y', 'a', 'b'), 9)]],
    ['is a step in a frame', ['u', 'v'].map(() => use(row('core.start', 'a', 'core.end'), 9))],
    ['was not completed', [use(row('a', 'b', 'c'), 9), use(row('a', 'b', 'c'), 9, ['n0', 'n1'])]],
  ])('is none where it %s', (_reason, uses) => {
    expect(typesOf(uses)).toEqual([]);
  });

  it('follows edges without a condition, along every branch', () => {
    const branching = (id: string) =>
      workflow(
        [node('a', 'a'), node('b', 'b'), node('c', 'c'), node('d', 'd'), node('e', 'e')],
        [
          edge('a', 'b'),
          edge('a', 'd', { condition: { type: 'truthy', left: 'output.x' } }),
          edge('b', 'c'),
          edge('b', 'e'),
          edge('d', 'e'),
        ],
        { id },
      );
    expect(typesOf([use(branching('one'), 2), use(branching('other'), 2)]).toSorted()).toEqual(['a b c', 'a b e']);
  });

  it('that is longer than anybody would read is told once', () => {
    const types = Array.from({ length: 60 }, (_, index) => `t${index}`);
    const found = recurringPaths([use(row(...types), 5), use(row(...types), 5)], 3);
    expect(found).toHaveLength(1);
  });
});

describe('for all workflows', () => {
  const uses = fc
    .array(
      fc.record({
        types: fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 8 }),
        runs: fc.integer({ min: 1, max: 4 }),
      }),
      { maxLength: 6 },
    )
    .map((rows) => rows.map(({ types, runs }) => use(row(...types), runs)));
  const has = (whole: readonly string[], part: readonly string[]): boolean =>
    ` ${whole.join(' ')} `.includes(` ${part.join(' ')} `);
  const typesIn = ({ plan }: Use): string[] => plan.nodes.map((planned) => planned.node.typeId);

  it('what is found is really there, often enough, and not part of something longer', () => {
    fc.assert(
      fc.property(uses, (all) => {
        const found = recurringPaths(all, 3);
        for (const { types, support, runGroups } of found) {
          const users = all.filter((one) => has(typesIn(one), types));
          expect(support).toBe(users.reduce((sum, { runs }) => sum + runs, 0));
          expect(support).toBeGreaterThanOrEqual(3);
          expect(new Set(users.map(({ workflowId }) => workflowId)).size).toBeGreaterThanOrEqual(2);
          expect(runGroups).toEqual(users);
          for (const trace of runGroups) {
            const along = nodesAlong(types, trace)!.map((id) => trace.plan.node(id)!.node.typeId);
            expect(along).toEqual(types);
          }
          expect(found.filter((other) => has(other.types, types))).toHaveLength(1);
        }
      }),
    );
  });

  it('nothing that recurs is left out', () => {
    fc.assert(
      fc.property(uses, (all) => {
        const found = recurringPaths(all, 3);
        for (const one of all) {
          const types = typesIn(one);
          for (let first = 0; first + 3 <= types.length; first++) {
            const part = types.slice(first, first + 3);
            const users = all.filter((other) => has(typesIn(other), part));
            const support = users.reduce((sum, { runs }) => sum + runs, 0);
            if (support < 3 || users.length < 2) continue;
            expect(found.some((path) => has(path.types, part))).toBe(true);
          }
        }
      }),
    );
  });
});
