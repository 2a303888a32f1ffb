import { MODEL_NODES } from '../../src/capabilities/ai/models/nodes.ts';
import { CONFORMANCE_NODES } from '../../src/capabilities/conformance/nodes/index.ts';
import { emailSend } from '../../src/capabilities/integrations/email/nodes.ts';
import { httpFetch } from '../../src/capabilities/integrations/http-client/nodes.ts';
import { KV_NODES } from '../../src/capabilities/integrations/storage/nodes.ts';
import { INTERRUPT_NODES } from '../../src/capabilities/people/interrupts/nodes.ts';
import { NODES } from '../../src/capabilities/running/nodes/standard.ts';
import { OutputBudget } from '../../src/engine/limits/output-budget.ts';
import { OUTPUT_LIMITS } from '../../src/engine/limits/output-limits.ts';
import type { WorkflowNode } from '../../src/protocol/running/workflows.ts';
import { catalogOf } from '../../src/runtime/catalog.ts';
import { type Effects, SEAMS } from '../../src/runtime/effects/seams.ts';
import type { NodeContext, NodeType, Outcome } from '../../src/runtime/node-type.ts';
import { localSchemaValidator, schemaAnswerer } from '../../src/runtime/validation/schema-validator.ts';
import { node as definitionNode } from './definitions.ts';

/** When the nodes of tests start. */
export const STARTED_AT = Date.parse('2026-01-01T00:00:00Z');

const answerLocally = schemaAnswerer();
const catalog = catalogOf([
  ...NODES,
  ...INTERRUPT_NODES,
  ...MODEL_NODES,
  ...CONFORMANCE_NODES,
  httpFetch,
  emailSend,
  ...KV_NODES,
]);

/** The node type with an id, of all that a host with the conformance switch has. */
export function typeOf(typeId: string): NodeType {
  const type = catalog.get(typeId);
  if (!type) throw new Error(`there is no node type ${typeId}`);
  return type;
}

/** Calls a node as a function, with a context that has nothing but what is given. */
export function run(typeId: string, given: Partial<NodeContext> = {}): Outcome | Promise<Outcome> {
  return typeOf(typeId).run(contextOf(typeId, given));
}

/** The outputs of a node that completes. */
export function outputsOf(typeId: string, given: Partial<NodeContext> = {}): unknown {
  const outcome = run(typeId, given) as Outcome;
  if (!('done' in outcome)) throw new Error(`not done: ${JSON.stringify(outcome)}`);
  return outcome.done.outputs;
}

/** Paths of the problems that the config of a node has. */
export function configProblems(typeId: string, config: Record<string, unknown>): string[] {
  const node = definitionNode('a', typeId, { config });
  const paths = catalog.checkConfig(node).map(({ path }) => path);
  return paths.length > 0 ? paths : unusableSchemas(node).map(({ path }) => path);
}

function unusableSchemas(node: WorkflowNode) {
  return catalog
    .schemasIn(node)
    .filter(({ schema }) => 'unusable' in answerLocally({ schema: JSON.stringify(schema) }));
}

/** A context in which everything that is not given is empty, or fails when it is used. */
export function contextOf(typeId: string, given: Partial<NodeContext> = {}): NodeContext {
  const { config = {} } = given;
  return {
    schemas: localSchemaValidator(),
    runId: 'run-1',
    owner: { tenant: 'alpha', principal: 'somebody' },
    workflow: { id: 'wf', name: 'A workflow', nodes: [], edges: [], metadata: {} },
    node: definitionNode('a', typeId, { config }),
    config,
    inputs: given.declared ?? {},
    declared: {},
    variables: {},
    masked: () => ({ inputs: given.inputs ?? given.declared ?? {}, variables: given.variables ?? {} }),
    configurable: {},
    attempt: 0,
    isLastAttempt: true,
    visit: 0,
    startedAt: STARTED_AT,
    now: () => STARTED_AT,
    signal: new AbortController().signal,
    answer: undefined,
    answers: [],
    answerCount: 0,
    decisions: [],
    routes: () => false,
    child: undefined,
    children: [],
    childResult: unexpected,
    effects: effectsOf({}),
    budget: new OutputBudget('The output', OUTPUT_LIMITS.output),
    holder: { tenant: 'alpha', workspace: undefined, commit: unexpected, trace: () => undefined },
    sleep: unexpected,
    emit: unexpected,
    emitShown: unexpected,
    emitStep: unexpected,
    ...given,
  };
}

/** Effects with these seams alone; any other fails when it is used. */
export function effectsOf(given: Partial<Effects>): Effects {
  return { ...Object.fromEntries(Object.keys(SEAMS).map((seam) => [seam, unexpected])), ...given } as Effects;
}

function unexpected(): never {
  throw new Error('the node used a part of its context that the test does not provide');
}
