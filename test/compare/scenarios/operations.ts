import type { Answer, Api } from '../../support/api.ts';
import { workflowsById } from '../order.ts';
import type { Scenario, Stage } from '../scenario.ts';

/** Depend on the connection or the moment, or follow from the body. */
const PASSING_HEADERS = new Set(['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding']);
/** The audit log is written a little later than what it tells of; the scenario of libraries looks into it. */
const AUDIT = /\/audit\b/;
const UNKNOWN = 'no-such-thing';

/**
 * Every operation of the OpenAPI document, called without a key, without rights, for something that does not exist,
 * and with a body that is no JSON. Played in a tenant of its own, so that it does not see what other scenarios made.
 */
export const operations: Scenario = {
  name: 'operations',
  modes: ['plain', 'conformance'],
  async play(stage) {
    const { body } = await stage.anonymous.get('/v1/openapi.json');
    for (const [template, methods] of Object.entries<object>(body.paths)) {
      const path = template.replace(/\{\w+\}/g, UNKNOWN);
      for (const method of Object.keys(methods)) await callEach(stage, method.toUpperCase(), path);
    }
    stage.record('unknown path', essence('', await stage.as('other').get('/v1/no-such-path')));
    stage.record('wrong method', essence('', await stage.as('other').request('PUT', '/v1/runs', {})));
  },
};

async function callEach(stage: Stage, method: string, path: string): Promise<void> {
  const hasBody = ['POST', 'PUT', 'PATCH'].includes(method);
  const call = async (name: string, api: Api, body?: unknown): Promise<void> => {
    const headers = typeof body === 'string' ? { 'content-type': 'application/json' } : {};
    stage.record(`${method} ${path} ${name}`, essence(path, await api.request(method, path, body, headers)));
  };
  await call('without a key', stage.anonymous);
  await call('without rights', stage.as('powerless'), hasBody ? {} : undefined);
  await call('for nothing', stage.as('other'), hasBody ? {} : undefined);
  if (hasBody) await call('with bad JSON', stage.as('other'), '{"a":');
}

function essence(path: string, { status, headers, body, text }: Answer): object {
  const kept = [...headers].filter(([name]) => !PASSING_HEADERS.has(name)).sort();
  const isMasked = status === 200 && AUDIT.test(path);
  return { status, headers: Object.fromEntries(kept), body: isMasked ? '<audit>' : (workflowsById(body) ?? text) };
}
