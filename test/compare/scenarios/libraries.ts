import type { Api } from '../../support/api.ts';
import { until } from '../../support/until.ts';
import { sortedBy } from '../order.ts';
import type { Scenario } from '../scenario.ts';

type Step = readonly [method: string, path: string, body?: object];

const TEMPLATE = { templateId: 'compare.report', version: '1.0.0', kind: 'system', text: 'Report on {{topic}}.' };
const VARIABLES = [{ name: 'topic', type: 'string', required: true }];
const CRITERIA = [{ key: 'short', expression: 'outputs.text.size() < 100' }];

const STEPS: readonly Step[] = [
  ['POST', '/v1/prompts', { ...TEMPLATE, variables: VARIABLES }],
  ['POST', '/v1/prompts', TEMPLATE],
  ['PUT', '/v1/prompts/compare.report', { ...TEMPLATE, version: '1.1.0', variables: VARIABLES }],
  ['GET', '/v1/prompts/compare.report?version=1.0.0'],
  ['POST', '/v1/prompts:render', { ref: 'prompt:compare.report', variables: { topic: 'rain' } }],
  ['POST', '/v1/prompts:render', { ref: 'prompt:compare.report' }],
  ['DELETE', '/v1/prompts/compare.report'],
  ['POST', '/v1/host/capstan/verifiers', { id: 'compare', kind: 'criteria', criteria: CRITERIA }],
  ['POST', '/v1/host/capstan/verifiers', { id: 'compare', kind: 'schema', schema: { type: 'object' } }],
  ['GET', '/v1/host/capstan/verifiers/compare'],
  ['DELETE', '/v1/host/capstan/verifiers/compare'],
  ['POST', '/v1/webhooks', { url: 'https://93.184.216.34/hook', events: ['run.completed'], tags: ['a'] }],
  ['POST', '/v1/webhooks', { url: 'http://127.0.0.1:1/hook', events: ['run.completed'] }],
  ['GET', '/v1/host/capstan/webhooks'],
  ['POST', '/v1/host/capstan/keys', { name: 'one more', role: 'viewer', principal: 'viewer' }],
  ['GET', '/v1/host/capstan/keys'],
  ['GET', '/v1/host/capstan/runs?limit=5&status=completed'],
];

/** What is written, read and removed again: prompts, verifiers, webhooks and keys, and the audit log of it. */
export const libraries: Scenario = {
  name: 'libraries',
  modes: ['plain'],
  async play(stage) {
    for (const [method, path, body] of STEPS) {
      const answer = await stage.as('other').request(method, path, body);
      stage.record(`${method} ${path}`, { status: answer.status, body: answer.body });
    }
    stage.record('audit', await auditOf(stage.as('other')));
  },
};

/** By action: the use of a key is written down a little later than what was done with it. */
async function auditOf(api: Api): Promise<unknown[]> {
  const { body } = await until(
    () => api.get('/v1/host/capstan/audit?limit=50'),
    (answer) => answer.body.items.some(({ action }: Entry) => action === 'key.used'),
  );
  const entries: Omit<Entry, 'sequence'>[] = body.items.map(({ sequence: _sequence, ...entry }: Entry) => entry);
  return sortedBy(entries, ({ action }) => action);
}

interface Entry {
  readonly action: string;
  readonly sequence: number;
}
