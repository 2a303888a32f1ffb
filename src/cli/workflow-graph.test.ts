import { expect, it } from 'vitest';
import { edge, line, node, workflow } from '../../test/support/definitions.ts';
import { plain } from './text.ts';
import { graphLines } from './workflow-graph.ts';

it('prints a workflow in graph order with its conditions, including cycles', () => {
  const definition = workflow(
    [
      node('end'),
      node('gate', 'core.approvalGate'),
      node('begin', 'core.start', { disabled: true }),
      node('lone'),
      node('ring'),
      node('rung'),
    ],
    [
      ...line('begin', 'gate'),
      edge('gate', 'end', { condition: { type: 'equals', left: 'output.action', right: 'accept' } }),
      edge('gate', 'begin', { label: 'again' }),
      edge('gate', 'lone', { triggerRule: 'any_failed' }),
      ...line('ring', 'rung', 'ring'),
    ],
    { id: 'shown', variables: [{ name: 'who', type: 'string', required: true }] },
  );
  expect(graphLines(definition, plain)).toEqual([
    'shown  A workflow of a test  1.0',
    '  variable who: string, required',
    '',
    'end  core.noop',
    'gate  core.approvalGate',
    '  ├─ output.action equals "accept" > end',
    '  ├─ again > begin',
    '  └─> lone  (any_failed)',
    'begin  core.start, disabled',
    '  └─> gate',
    'lone  core.noop',
    'ring  core.noop',
    '  └─> rung',
    'rung  core.noop',
    '  └─> ring',
  ]);
});
