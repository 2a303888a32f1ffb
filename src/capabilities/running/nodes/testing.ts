import { node as definitionNode } from '../../../../test/support/definitions.ts';
import { catalogOf } from '../../../runtime/catalog.ts';
import { type Effects, SEAMS } from '../../../runtime/effects/seams.ts';
import type { NodeContext, NodeType, Outcome } from '../../../runtime/node-type.ts';
import { MODEL_NODES } from '../../ai/models/nodes.ts';
import { CONFORMANCE_NODES } from '../../conformance/nodes/index.ts';
import { emailSend } from '../../integrations/email/nodes.ts';
import { httpFetch } from '../../integrations/http-client/nodes.ts';
import { KV_NODES } from '../../integrations/storage/nodes.ts';
import { NODES } from './standard.ts';

/** Shared by the tests of node types: a node is called as a function, with a context that holds nothing unasked. */

export const STARTED_AT = Date.parse('2026-01-01T00:00:00Z');

const catalog = catalogOf([...NODES, ...MODEL_NODES, ...CONFORMANCE_NODES, httpFetch, emailSend, ...KV_NODES]);

export function typeOf(typeId: string): NodeType {
  const type = catalog.get(typeId);
  if (!type) throw new Error(`there is no node type ${typeId}`);
  return type;
}

export function run(typeId: string, given: Partial<NodeContext> = {}): Outcome | Promise<Outcome> {
  return typeOf(typeId).run(contextOf(typeId, given));
}

/** What a node of this type gives when it is done. */
export function outputsOf(typeId: string, given: Partial<NodeContext> = {}): unknown {
  const outcome = run(typeId, given) as Outcome;
  if (!('done' in outcome)) throw new Error(`not done: ${JSON.stringify(outcome)}`);
  return outcome.done.outputs;
}

/** Places in the config of a node that the definition would be refused for. */
export function configProblems(typeId: string, config: Record<string, unknown>): string[] {
  return catalog.checkConfig(definitionNode('a', typeId, { config })).map(({ path }) => path);
}

export function contextOf(typeId: string, given: Partial<NodeContext> = {}): NodeContext {
  const { config = {} } = given;
  return {
    runId: 'run-1',
    owner: { tenant: 'alpha', principal: 'somebody' },
    workflow: { id: 'wf', name: 'A workflow', nodes: [], edges: [] },
    node: definitionNode('a', typeId, { config }),
    config,
    inputs: given.declared ?? {},
    declared: {},
    variables: {},
    shown: () => ({ inputs: given.inputs ?? given.declared ?? {}, variables: given.variables ?? {} }),
    configurable: {},
    attempt: 0,
    visit: 0,
    startedAt: STARTED_AT,
    now: () => STARTED_AT,
    signal: new AbortController().signal,
    answer: undefined,
    answers: 0,
    decisions: [],
    isRouted: false,
    child: undefined,
    children: [],
    childResult: unexpected,
    effects: effectsOf({}),
    sleep: unexpected,
    emit: unexpected,
    tell: unexpected,
    ...given,
  };
}

/** These seams, and none besides. */
export function effectsOf(given: Partial<Effects>): Effects {
  return { ...Object.fromEntries(Object.keys(SEAMS).map((seam) => [seam, unexpected])), ...given } as Effects;
}

function unexpected(): never {
  throw new Error('this node was not expected to reach so far');
}
