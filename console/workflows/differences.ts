import { canonicalJson } from '../../src/protocol/format/json.ts';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';

/** What became of one part of a workflow. */
export interface Difference {
  readonly kind: 'added' | 'removed' | 'changed';
  readonly what: string;
}

type Named = readonly (readonly [name: string, value: unknown])[];

/** What differs between two versions, part by part; where nodes were drawn does not count. */
export function differences(old: WorkflowDefinition, fresh: WorkflowDefinition): Difference[] {
  const rest = ({ nodes: _n, edges: _e, variables: _v, ...others }: WorkflowDefinition): Named =>
    Object.entries(others);
  const nodes = (of: WorkflowDefinition): Named => of.nodes.map(({ position: _position, ...node }) => [node.id, node]);
  return [
    ...between('node', nodes(old), nodes(fresh)),
    ...between('edge', edgesOf(old), edgesOf(fresh)),
    ...between('variable', variablesOf(old), variablesOf(fresh)),
    ...between('', rest(old), rest(fresh)),
  ];
}

const edgesOf = ({ edges }: WorkflowDefinition): Named =>
  edges.map((edge) => [`${edge.sourceNodeId} → ${edge.targetNodeId}`, edge]);
const variablesOf = ({ variables }: WorkflowDefinition): Named => variables.map((each) => [each.name, each]);

function between(kind: string, old: Named, fresh: Named): Difference[] {
  const [before, after] = [new Map(old), new Map(fresh)];
  const named = (name: string): string => `${kind} ${name}`.trim();
  return [
    ...[...after].flatMap(([name, value]): Difference[] => {
      if (!before.has(name)) return [{ kind: 'added', what: named(name) }];
      return canonicalJson(before.get(name)) === canonicalJson(value) ? [] : [{ kind: 'changed', what: named(name) }];
    }),
    ...[...before.keys()]
      .filter((name) => !after.has(name))
      .map((name): Difference => ({ kind: 'removed', what: named(name) })),
  ];
}
