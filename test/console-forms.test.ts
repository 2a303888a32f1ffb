import { expect, it } from 'vitest';
import { planDraftOf, readPlan } from '../console/goals/plan-draft.ts';
import { problemsOf } from '../console/parts/field-problems.ts';
import { bytes, dollars } from '../console/parts/numbers.ts';
import { RefusedError } from '../src/client/index.ts';

/** The pure parts of the console's forms. */

const refused = (details: Record<string, unknown>) =>
  new RefusedError({ status: 400, code: 'validation_error', message: 'The host says no.', details });

it('puts what the host refused at the field that it names, and all else where it is seen', () => {
  const listed = refused({ fields: [{ path: 'criteria[1].key', message: 'must not be empty' }] });
  expect(problemsOf(listed, ['criteria.1.key', 'criteria'])).toEqual({
    fields: { 'criteria.1.key': 'This must not be empty.' },
    rest: undefined,
  });
  expect(problemsOf(listed, ['criteria']).fields).toEqual({ criteria: 'This must not be empty.' });
  expect(problemsOf(refused({ field: 'cron' }), ['cron']).fields).toEqual({ cron: 'The host says no.' });
  expect(problemsOf(refused({ field: 'other' }), ['cron'])).toEqual({ fields: {}, rest: 'The host says no.' });
  expect(problemsOf(undefined, ['cron'])).toEqual({ fields: {}, rest: undefined });
});

it('reads a plan back as it was, and keeps what the form does not show', () => {
  const plan = {
    workflowId: 'w',
    criteria: [{ key: 'done', expression: 'true' }],
    inputs: { a: 1 },
    schedule: { cron: '0 7 * * 1', timezone: 'UTC' },
    heartbeat: { intervalSec: 60, when: 'true' },
  };
  for (const mode of ['schedule', 'heartbeat', 'manual'] as const) {
    expect(readPlan(planDraftOf(plan), mode, plan)).toEqual({ plan, problems: {} });
  }
});

it('says what is wrong with a plan before it is sent', () => {
  const draft = { ...planDraftOf(undefined), workflowId: 'w', inputs: '{', maxParallel: '1.5', observe: '[]' };
  expect(readPlan(draft, 'heartbeat', undefined).problems).toEqual({
    inputs: expect.stringContaining('This is not JSON'),
    maxParallel: 'This must be a whole number.',
    'heartbeat.observe': 'This is JSON, but not an object.',
  });
});

it.each([
  [0, '0 B'],
  [1_023, '1023 B'],
  [1_024, '1 KiB'],
  [1_536, '1.5 KiB'],
  [10_737_418_240, '10 GiB'],
])('shows %i bytes as %s', (value, text) => {
  expect(bytes(value)).toBe(text);
});

it('shows less than a cent to more places', () => {
  expect([0, 0.004, 1.5].map(dollars)).toEqual(['$0.00', '$0.0040', '$1.50']);
});
