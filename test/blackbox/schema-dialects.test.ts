import { expect, it } from 'vitest';
import type { Api } from '../support/api.ts';
import { fixed, node, register, WORKFLOWS, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { clarification, resolve, waitingRun } from '../support/interrupts.ts';
import { onOneStore } from '../support/stores.ts';

/**
 * Goal: a schema works wherever this host takes one, whichever dialect its `$schema` names.
 * Method: the same schema in each dialect, in the places where people write schemas.
 */

const DIALECTS = [
  'http://json-schema.org/draft-04/schema#',
  'http://json-schema.org/draft-06/schema#',
  'http://json-schema.org/draft-07/schema#',
  'https://json-schema.org/draft/2019-09/schema',
  'https://json-schema.org/draft/2020-12/schema',
];
const VALIDATE = 'core.openwop.data.json-schema-validate';

onOneStore('a schema with a dialect', (host) => {
  const api = (): Api => host().as('editor');

  it.each(DIALECTS)('is taken wherever schemas are: %s', async ($schema) => {
    const configurableSchema = { $schema, type: 'object', properties: { 'acme.mode': { enum: ['a'] } } };
    const schema = { $schema, type: 'string', minLength: 3 };
    const validate = node('check', VALIDATE, { inputs: { value: fixed('ab'), schema: fixed(schema) } });
    const questions = clarification('ask', [{ id: 'q', question: 'Who?', schema }]);
    const agent = node('agent', 'core.agents.run', {
      config: { systemPrompt: 'Go.', outputSchema: { ...schema, type: 'object' } },
      inputs: { userPrompt: fixed('Hello.') },
      disabled: true,
    });
    const workflowId = await register(api(), workflow([validate, questions, agent], [], { configurableSchema }));
    const refused = await api().post('/v1/runs', { workflowId, configurable: { 'acme.mode': 'b' } });
    expectRefusal(refused, 400, 'validation_error');

    const { runId } = await waitingRun(api(), workflowId, { configurable: { 'acme.mode': 'a' } });
    const answer = (text: string) => resolve(api(), runId, 'ask', { answers: [{ id: 'q', answer: text }] });
    expectRefusal(await answer('Al'), 400, 'validation_error');
    expect((await answer('Alice')).status).toBe(200);
    const ended = await api().ended(runId);
    expect(ended).toMatchObject({ status: 'completed', nodeStates: { check: { outputs: { valid: false } } } });
    expect(ended.nodeStates.check.outputs.errors).toHaveLength(1);
  });

  it('is refused by name if nobody here knows it', async () => {
    const configurableSchema = { $schema: 'https://example.com/own', type: 'object' };
    const answer = await api().post(WORKFLOWS, workflow([node('a')], [], { configurableSchema }));
    expectRefusal(answer, 422, 'validation_error');
    expect(answer.text).toContain('2020-12');
  });

  it('cannot bring the host down', async () => {
    const inputs = { value: fixed(1), schema: fixed({ $async: true, type: 'string' }) };
    const ended = await api().ended(
      await api().run(await register(api(), workflow([node('check', VALIDATE, { inputs })]))),
    );
    expect(ended.nodeStates.check.outputs).toMatchObject({ valid: false });
  });
});
