import type { Answer } from '../../support/api.ts';
import { workflowsById } from '../order.ts';
import type { Scenario, Stage } from '../scenario.ts';

const INVENTORIES = [
  '/v1/tools',
  '/v1/agents',
  '/v1/prompts',
  '/v1/packs',
  '/v1/packs/-/search',
  '/v1/host/capstan/packs',
  '/v1/host/capstan/packs/lockfile',
  '/v1/host/capstan/workflows?limit=200',
  '/v1/host/capstan/verifiers',
  '/v1/host/capstan/schedules',
  '/v1/host/capstan/heartbeats',
  '/v1/host/capstan/commitments',
  '/v1/host/capstan/webhooks',
  '/v1/host/capstan/inbox',
  '/v1/host/capstan/keys',
  '/v1/host/capstan/memory',
  '/v1/goals',
  '/v1/proposals',
  '/healthz',
  '/readyz',
];

/** The documents that a host serves about itself, and its lists as they are after the start. */
export const documents: Scenario = {
  name: 'documents',
  modes: ['plain', 'conformance'],
  async play(stage) {
    stage.record('discovery', (await stage.anonymous.get('/.well-known/openwop')).body);
    recordApi(stage, 'openapi', (await stage.anonymous.get('/v1/openapi.json')).body);
    recordApi(stage, 'asyncapi', (await stage.anonymous.get('/v1/asyncapi.json')).body);
    for (const path of INVENTORIES) {
      stage.record(path, workflowsById((await stage.as('owner').get(path)).body));
    }
    await recordDefinitions(stage);
    stage.record('metrics', metricNames((await stage.anonymous.get('/metrics')).text));
  },
};

/** One document for each path, channel and component, so that a difference names its place. */
function recordApi(
  stage: Stage,
  name: string,
  { paths, channels, operations, components, ...rest }: Answer['body'],
): void {
  const parts = { paths, channels, operations, ...components };
  stage.record(name, { ...rest, parts: namesIn(parts) });
  for (const [part, entries] of Object.entries(parts)) {
    for (const [key, value] of Object.entries(entries ?? {})) stage.record(`${name} ${part} ${key}`, value);
  }
}

function namesIn(parts: Record<string, object | undefined>): object {
  return Object.fromEntries(Object.entries(parts).map(([part, entries]) => [part, Object.keys(entries ?? {})]));
}

async function recordDefinitions(stage: Stage): Promise<void> {
  const { body } = await stage.as('owner').get('/v1/host/capstan/workflows?limit=200');
  for (const { id } of body.items) {
    stage.record(`workflow ${id}`, (await stage.as('owner').get(`/v1/workflows/${id}`)).body);
  }
}

/** The names and types of the metrics. Their values are measured. */
function metricNames(text: string): string[] {
  return text.split('\n').filter((line) => line.startsWith('# TYPE'));
}
