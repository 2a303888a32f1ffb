import { createHash } from 'node:crypto';
import type { JsonObject } from '../../src/protocol/format/json.ts';
import type { Answer, Api } from './api.ts';
import { unique } from './definitions.ts';

export const PROPOSALS = '/v1/proposals';
export const INSTALLED = '/v1/host/capstan/artifacts/installed';

/** A prompt template that no other test has. */
export function template(more: JsonObject = {}): JsonObject {
  return { templateId: unique('learnt'), version: '1.0.0', kind: 'user', text: 'List five points.', ...more };
}

/** A pack with one chain of one node. */
export function chainPack(more: JsonObject = {}): JsonObject {
  return {
    name: `private.acme.${unique('chain')}`,
    version: '1.0.0',
    kind: 'workflow-chain',
    engines: { openwop: '>=1.0.0' },
    chains: [
      {
        chainId: 'steps',
        version: '1.0.0',
        label: 'Steps',
        description: '',
        parameters: {},
        dag: { nodes: [{ id: 'only', typeId: 'core.noop' }], edges: [] },
      },
    ],
    ...more,
  };
}

/** A pack with one agent. */
export function agentPack(more: JsonObject = {}): JsonObject {
  const name = `private.acme.${unique('agent')}`;
  return {
    name,
    version: '1.0.0',
    engines: { openwop: '>=1.0.0' },
    runtime: { language: 'remote', entry: 'pack.json' },
    agents: [
      {
        agentId: `${name}.default`,
        persona: 'Triage',
        modelClass: 'classification',
        systemPrompt: 'Sort tickets by urgency.',
        toolAllowlist: [],
      },
    ],
    ...more,
  };
}

/** A draft as if it had been learnt from runs. */
export async function drafted(api: Api, kind: string, artifact: JsonObject, more: JsonObject = {}) {
  const answer = await tryDraft(api, kind, artifact, more);
  if (answer.status !== 201) throw new Error(`not drafted: ${answer.status} ${answer.text}`);
  return answer.body;
}

export function tryDraft(api: Api, kind: string, artifact: JsonObject, more: JsonObject = {}): Promise<Answer> {
  return api.post('/v1/host/sample/test/proposals', { kind, artifact, evidenceKey: unique('evidence'), ...more });
}

export async function evidenceOf(api: Api, proposalId: string): Promise<Answer['body']> {
  return (await api.get(`/v1/host/capstan/proposals/${proposalId}/evidence`)).body;
}

export const stateOf = async (api: Api, proposalId: string): Promise<string> =>
  (await api.get(`${PROPOSALS}/${proposalId}`)).body.state;

export const apply = (api: Api, proposalId: string): Promise<Answer> => api.post(`${PROPOSALS}/${proposalId}/apply`);

export const revise = (api: Api, proposalId: string, body: object | string): Promise<Answer> =>
  api.request('PATCH', `${PROPOSALS}/${proposalId}`, body, { 'content-type': 'application/json' });

let rewritten = 0;

/** Revises the artifact without changing what it means: with other white space, so that its text has another author. */
export async function rewrite(api: Api, proposalId: string, note = 'mine'): Promise<Answer> {
  const { artifact } = (await api.get(`${PROPOSALS}/${proposalId}`)).body;
  const text = JSON.stringify(artifact).replace('{', `{${' '.repeat(++rewritten)}`);
  return revise(api, proposalId, `{"artifact":${text},"note":${JSON.stringify(note)}}`);
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
