import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testWorkflow } from 'capstan/build';
import project from './capstan.config.ts';

test('a small invoice is reminded of after a day, without anybody', async () => {
  const { status, outputs } = await testWorkflow(project, 'remind-of-invoice', { inputs: { number: '2026-1' } });
  assert.equal(status, 'completed');
  assert.deepEqual(outputs.reminder, { text: 'Dear Ada, 80 EUR are due.' });
});

test('somebody looks at a large one first', async () => {
  const { status, outputs } = await testWorkflow(project, 'remind-of-invoice', {
    inputs: { number: '2026-2' },
    answer: ({ kind }) => (kind === 'approval' ? { action: 'accept' } : undefined),
  });
  assert.equal(status, 'completed');
  assert.deepEqual(outputs['large-reminder'], { text: 'Dear Bo, 12000 EUR are due.' });
});

test('an invoice that is not there fails the run', async () => {
  const { status, error } = await testWorkflow(project, 'remind-of-invoice', { inputs: { number: '1999-1' } });
  assert.equal(status, 'failed');
  assert.equal(error?.code, 'no_such_invoice');
});
