import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { node, variable, workflow } from '../../../test/support/definitions.ts';
import type { NewEvent } from '../../protocol/running/events.ts';
import { MASKING_MODES, type MaskingMode, type WorkflowDefinition } from '../../protocol/running/workflows.ts';
import { makePlan } from '../definition/plan.ts';
import { hasSensitiveParts, maskMembers, maskPayload, maskQuestion, maskValue, REDACTED } from './mask.ts';

describe('a sensitive value', () => {
  it.each([
    ['mask', REDACTED],
    ['omit', undefined],
    ['hash', 'sha256:digest of "secret"'],
    ['passthrough', 'secret'],
  ] as const)('is shown under %s as %j', (mode, shown) => {
    expect(maskValue('secret', mode, digest)).toEqual(shown);
  });

  it.each([null, 0, '', false, [], {}, undefined])('is hashed, whatever its type: %j', (value) => {
    expect(maskValue(value, 'hash', digest)).toMatch(/^sha256:digest of ./);
  });
});

describe('members of an object', () => {
  it('are masked if sensitive, and omitted under omit', () => {
    expect(maskMembers(VALUES, isSensitive, 'mask', digest)).toEqual({ open: 1, secret: REDACTED });
    expect(maskMembers(VALUES, isSensitive, 'omit', digest)).toEqual({ open: 1 });
  });

  it('are returned as the same object if nothing is masked', () => {
    expect(maskMembers(VALUES, () => false, 'mask', digest)).toBe(VALUES);
    expect(maskMembers(VALUES, isSensitive, 'passthrough', digest)).toBe(VALUES);
  });

  it('do not change when masked again, in every idempotent mode', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.func(fc.boolean()),
        fc.constantFrom<MaskingMode>('mask', 'omit', 'passthrough'),
        (values, chosen, mode) => {
          const sensitive = (name: string): boolean => chosen(name);
          const once = maskMembers(values, sensitive, mode, digest);
          expect(maskMembers(once, sensitive, mode, digest)).toEqual(once);
        },
      ),
    );
  });

  it('are never changed if not sensitive, and never shown if sensitive', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.constantFrom<MaskingMode>('mask', 'omit', 'hash'),
        (values, mode) => {
          const masked = maskMembers({ ...values, secret: 'XYZZY' }, isSensitive, mode, () => 'digest');
          expect(JSON.stringify(masked)).not.toContain('XYZZY');
          for (const [name, value] of Object.entries(values)) {
            if (name !== 'secret') expect(masked[name]).toEqual(value);
          }
        },
      ),
    );
  });
});

describe('the payload that readers get', () => {
  it.each(MASKING_MODES)('of a write to a sensitive variable hides both values under %s', (mode) => {
    const event: NewEvent = {
      type: 'variable.changed',
      payload: { name: 'pin', previous: 'OLD', next: 'NEW', nodeId: 'a' },
    };
    const shown = JSON.stringify(maskPayload(planOf(mode), event, () => 'digest'));
    expect(shown).toContain('"name":"pin"');
    expect(/OLD|NEW/.test(shown)).toBe(mode === 'passthrough');
  });

  it.each(MASKING_MODES)('of a write to a sensitive channel still has a value under %s', (mode) => {
    const payload = { channel: 'c', value: 'XYZZY', reducer: 'append', writtenAt: '2026-01-01T00:00:00Z' };
    const shown = maskPayload(planOf(mode), { type: 'channel.written', payload }, () => 'digest') as object;
    expect(JSON.parse(JSON.stringify(shown))).toHaveProperty('value');
    expect(JSON.stringify(shown).includes('XYZZY')).toBe(mode === 'passthrough');
  });

  it.each(MASKING_MODES)('of a node with a sensitive port hides that port alone under %s', (mode) => {
    const event: NewEvent = { type: 'node.completed', nodeId: 'a', payload: { nodeId: 'a', outputs: OUTPUTS } };
    const shown = maskPayload(planOf(mode), event, () => 'digest') as { outputs: object };
    expect(shown.outputs).toMatchObject({ open: 'seen', shown: 'too' });
    expect(JSON.stringify(shown).includes('XYZZY')).toBe(mode === 'passthrough');
  });

  it.each(MASKING_MODES)('of the end of the run hides that port as well under %s', (mode) => {
    const event: NewEvent = { type: 'run.completed', payload: { outputs: { a: OUTPUTS, b: { hidden: 'kept' } } } };
    const shown = JSON.stringify(maskPayload(planOf(mode), event, () => 'digest'));
    expect(shown).toContain('kept');
    expect(shown.includes('XYZZY')).toBe(mode === 'passthrough');
  });

  it('of other variables, channels and nodes is unchanged', () => {
    const events: NewEvent[] = [
      { type: 'variable.changed', payload: { name: 'open', next: 1 } },
      { type: 'channel.written', payload: { channel: 'd', value: 1, reducer: 'append', writtenAt: 'x' } },
      { type: 'node.completed', nodeId: 'b', payload: { nodeId: 'b' } },
      { type: 'run.completed', payload: {} },
      { type: 'log.appended', payload: { level: 'info', message: 'hello' } },
    ];
    for (const event of events) expect(maskPayload(planOf('mask'), event, digest)).toBe(event.payload);
  });
});

describe('questions and answers', () => {
  const asks = node('asks', 'core.approvalGate', { inputs: { pin: variable('pin'), open: variable('open') } });
  const tells = node('tells', 'core.interrupt', { outputSensitivity: { answers: true, output: true } });
  const plan = (maskingMode: MaskingMode) =>
    makePlan(
      workflow([asks, tells], [], {
        variables: [{ name: 'pin', type: 'string', sensitive: true }],
        metadata: { complianceConfig: { maskingMode } },
      }),
      1,
    );
  const edited = { action: 'edit-accept', editedArtifactData: { pin: 'XYZZY' }, feedback: 'seen' } as const;
  const artifact = { title: 'seen', artifactData: { pin: 'XYZZY', open: 'seen' } };
  const about = { nodeId: 'asks', interruptId: 'int-1' };
  const told = { nodeId: 'tells', interruptId: 'int-2' };
  const events: NewEvent[] = [
    { type: 'interrupt.requested', nodeId: 'asks', payload: { kind: 'approval', key: 'k', data: artifact } },
    { type: 'approval.received', nodeId: 'asks', payload: { nodeId: 'asks', decidedBy: 'seen', ...edited } },
    { type: 'interrupt.resolved', nodeId: 'asks', payload: { ...about, resumeValue: edited } },
    { type: 'node.resumed', nodeId: 'asks', payload: { ...about, resumeValue: edited } },
    { type: 'interrupt.resolved', nodeId: 'tells', payload: { ...told, resumeValue: 'XYZZY', resolvedBy: 'seen' } },
    {
      type: 'clarification.resolved',
      nodeId: 'tells',
      payload: { nodeId: 'tells', answers: { q: 'XYZZY' }, answeredBy: 'seen' },
    },
  ];

  it.each(events)('mask sensitive values and show the rest: $type', (event) => {
    for (const mode of ['mask', 'omit', 'hash'] as const) {
      const shown = JSON.stringify(maskPayload(plan(mode), event, () => 'digest'));
      expect(shown).not.toContain('XYZZY');
      if (event.type !== 'node.resumed') expect(shown).toContain('seen');
    }
    expect(maskPayload(plan('passthrough'), event, digest)).toEqual(event.payload);
  });

  it('are unchanged if nothing is sensitive', () => {
    const open = makePlan(workflow([node('asks', 'core.approvalGate'), node('tells')]), 1);
    for (const event of events) expect(maskPayload(open, event, digest)).toBe(event.payload);
  });

  it('keep the structure of answers', () => {
    const { answers } = maskPayload(plan('mask'), events.at(-1)!, digest) as { answers: object };
    expect(answers).toEqual({ q: REDACTED });
  });
});

describe('a definition', () => {
  it('has sensitive parts if a variable, a port or a channel is sensitive', () => {
    expect(hasSensitiveParts(makePlan(workflow([node('a')]), 1))).toBe(false);
    const parts: Partial<WorkflowDefinition>[] = [
      { variables: [{ name: 'v', type: 'string', sensitive: true }] },
      { nodes: [node('a', 'core.noop', { outputSensitivity: { x: true } })] },
      { channels: { c: { reducer: 'append', sensitive: true } } },
    ];
    for (const part of parts) expect(hasSensitiveParts(makePlan(workflow([node('a')], [], part), 1))).toBe(true);
  });
});

const VALUES = { open: 1, secret: 'XYZZY' };
const OUTPUTS = { hidden: 'XYZZY', open: 'seen', shown: 'too' };
const isSensitive = (name: string): boolean => name === 'secret';
const digest = (text: string): string => `digest of ${text}`;

function planOf(maskingMode: MaskingMode) {
  return makePlan(
    workflow([node('a', 'core.noop', { outputSensitivity: { hidden: true, shown: false } }), node('b')], [], {
      variables: [
        { name: 'pin', type: 'string', sensitive: true },
        { name: 'open', type: 'number' },
      ],
      channels: { c: { reducer: 'append', sensitive: true }, d: { reducer: 'append' } },
      metadata: { complianceConfig: { maskingMode } },
    }),
    1,
  );
}

describe('agent events', () => {
  const decided: NewEvent = {
    type: 'agent.decided',
    nodeId: 'a',
    payload: { agentId: 'core.test.agent', decision: 'It is 4711.', confidence: 1 },
  };
  const planOf = (sensitive: boolean, more: Partial<WorkflowDefinition> = {}) =>
    makePlan(
      workflow([node('a', 'core.agents.run', { inputs: { pin: variable('pin') } })], [], {
        variables: [{ name: 'pin', type: 'string', sensitive }],
        ...more,
      }),
      1,
    );

  it('are masked if the agent received sensitive values, even rephrased ones', () => {
    expect(maskPayload(planOf(true), decided, digest)).toEqual({ ...decided.payload, decision: REDACTED });
    expect(maskPayload(planOf(false), decided, digest)).toEqual(decided.payload);
    const open = { metadata: { complianceConfig: { maskingMode: 'passthrough' as const } } };
    expect(maskPayload(planOf(true, open), decided, digest)).toEqual(decided.payload);
  });

  it('are also masked in the interrupt raised for a person', () => {
    const data = { agentId: 'core.test.agent', threshold: 0.7, observed: 0.1, decision: 'It is 4711.' };
    expect(maskQuestion(planOf(true), 'a', data, digest)).toEqual({ ...data, decision: REDACTED });
  });
});
