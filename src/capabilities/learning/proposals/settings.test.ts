import { describe, expect, it } from 'vitest';
import { gateFor, readGates } from './settings.ts';

const settings = (text: string) => ({
  activation: 'approval-gate' as const,
  pendingMax: 1,
  gates: readGates(text).gates,
});

describe('the gate of a proposal', () => {
  it('takes one person, and an owner may override it, unless somebody says otherwise', () => {
    const gate = gateFor(settings('[]'), { tenant: 'acme', kind: 'automation' });
    expect(gate).toEqual({ quorum: 1, override: { requiredRole: 'owner' } });
  });

  it('is that of the first rule that fits its tenant and kind', () => {
    const rules = settings(
      '[{"tenant":"acme","kind":"automation","quorum":3},{"kind":"automation","quorum":2},{"tenant":"acme","timeoutSec":5}]',
    );
    expect(gateFor(rules, { tenant: 'acme', kind: 'automation' }).quorum).toBe(3);
    expect(gateFor(rules, { tenant: 'beta', kind: 'automation' }).quorum).toBe(2);
    expect(gateFor(rules, { tenant: 'acme', kind: 'agent-pack' })).toMatchObject({ quorum: 1, timeoutSec: 5 });
    expect(gateFor(rules, { tenant: 'beta', kind: 'agent-pack' }).timeoutSec).toBeUndefined();
  });

  it.each([
    ['[{}', ' must be a JSON array; it is not valid JSON from line 1, column 4 on.'],
    ['{}', ' must be a JSON array.'],
    ['[{"quorum":0}]', '[0].quorum must be at least 1.'],
    ['[{},{"kind":"rule"}]', '[1].kind must be one of prompt-template, workflow-chain-pack, agent-pack, automation.'],
    ['[{"requiredRole":"king"}]', '[0].requiredRole must be one of viewer, editor, reviewer, owner.'],
    ['[{"quorom":2}]', '[0].quorom is not a known member.'],
  ])('is not taken from %s', (text, problem) => {
    const { gates, problems } = readGates(text);
    expect(gates).toEqual([]);
    expect(problems).toEqual([problem]);
  });
});
