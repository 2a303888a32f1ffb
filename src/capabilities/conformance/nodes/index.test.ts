import { describe, expect, it } from 'vitest';
import { effectsOf, run, typeOf } from '../../../../test/support/node-context.ts';
import { catalogOf } from '../../../runtime/catalog.ts';
import { NODES } from '../../running/nodes/standard.ts';
import { CONFORMANCE_NODES } from './index.ts';

/** What the protocol expects every host to have, without the one that interrupts. */
const RESERVED = [
  'core.start',
  'core.end',
  'core.conditional',
  'core.delay',
  'core.loop',
  'core.parallel',
  'core.merge',
  'core.setVariable',
  'core.getVariable',
  'core.identity',
  'core.subWorkflow',
  'core.channelWrite',
];

describe('the node types of this host', () => {
  it.each(RESERVED)('include %s', (typeId) => {
    expect(NODES.map((type) => type.typeId)).toContain(typeId);
  });

  it('each have a name of their own', () => {
    const names = [...NODES, ...CONFORMANCE_NODES].map(({ typeId }) => typeId);
    expect(new Set(names).size).toBe(names.length);
  });

  it('of every tenant do not include those for tests', () => {
    expect(NODES.filter(({ typeId }) => /^(core\.)?conformance\./.test(typeId))).toEqual([]);
  });
});

describe('conformance.requiresMissing', () => {
  it('lacks what no host provides', () => {
    expect(typeOf('conformance.requiresMissing').lacks).toEqual({ capability: 'conformance.never-provided' });
  });
});

describe('core.conformance.side-effect', () => {
  it('does one effect through the seam and says which', async () => {
    const tool = async () => ({ outcome: { effectId: 'effect-1' }, durationMs: 0 });
    await expect(run('core.conformance.side-effect', { effects: effectsOf({ tool }) })).resolves.toEqual({
      done: { outputs: { effectId: 'effect-1' } },
    });
  });
});

describe('a catalog', () => {
  const catalog = catalogOf(NODES);

  it('knows its types', () => {
    expect(catalog.has('core.noop')).toBe(true);
    expect(catalog.has('conformance.requiresMissing')).toBe(false);
    expect(catalog.get('core.noop')?.typeId).toBe('core.noop');
  });

  it.each([
    ['core.dispatch', 'dispatch.supported'],
    ['core.orchestrator.supervisor', 'orchestrator.supported'],
    ['core.conversationGate', 'conversationPrimitive'],
    ['vendor.acme.thing', undefined],
    ['constructor', undefined],
    ['toString', undefined],
  ])('knows which capability brings %s: %s', (typeId, capability) => {
    expect(catalog.capabilityFor(typeId)).toBe(capability);
  });
});
