import { expect, it } from 'vitest';
import { startCommand } from './start-command.ts';

it('has a place for every input that a workflow cannot do without', () => {
  expect(startCommand({ id: 'triage' })).toBe('runs start triage');
  const variables = [
    { name: 'subject', type: 'string' as const, required: true },
    { name: 'plan', type: 'string' as const, required: true, defaultValue: 'free' },
    { name: 'count', type: 'number' as const, required: true },
    { name: 'note', type: 'string' as const },
  ];
  expect(startCommand({ id: 'triage', variables })).toBe('runs start triage --set subject=value --set count=value');
});
