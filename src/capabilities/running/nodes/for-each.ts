import { type Static, Type } from 'typebox';
import { type ChildState, isOver } from '../../../engine/run/run.ts';
import { type JsonObject, own } from '../../../protocol/format/json.ts';
import { MapOf, NonEmpty, OneOf } from '../../../protocol/format/schema.ts';
import type { ChildRequest } from '../../../runtime/child-request.ts';
import { invalid, type NodeContext, type NodeType, type Outcome } from '../../../runtime/node-type.ts';
import { pickVariables } from './sub-workflow.ts';

const ITEMS_MAX = 1_000;
const CONCURRENCY_MAX = 32;
const CONCURRENCY = 4;
/** Limit on the size of all results as JSON: they become part of the event log. */
const RESULTS_CHARACTERS_MAX = 1_000_000;

const Config = Type.Object({
  workflowId: NonEmpty,
  itemVariable: Type.Optional(
    Type.String({ minLength: 1, default: 'item', description: 'Variable of the child that gets the item' }),
  ),
  indexVariable: Type.Optional(
    Type.String({ minLength: 1, description: 'Variable of the child that gets the index, from 0' }),
  ),
  resultVariable: Type.Optional(
    Type.String({ minLength: 1, default: 'result', description: 'Variable of the child that holds the result' }),
  ),
  inputMapping: Type.Optional(
    MapOf(Type.String(), { description: 'Variables of the children, from variables of the parent' }),
  ),
  concurrency: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: CONCURRENCY_MAX,
      default: CONCURRENCY,
      description: 'Children that run at the same time',
    }),
  ),
  onChildFailure: Type.Optional(
    OneOf(['fail-fast', 'collect'], {
      default: 'fail-fast',
      description: 'Fail with the first child that fails and cancel the others, or let all of them end',
    }),
  ),
  propagateCancellation: Type.Optional(Type.Boolean({ default: true })),
});
type Config = Static<typeof Config>;

/**
 * Runs a workflow for each item of a list, a few at a time, and collects the results in the order of the items. The log
 * tells which child belongs to which item, because children are started in the order of the items and none twice.
 */
export const forEach: NodeType = {
  typeId: 'vendor.capstan.flow.for-each',
  description: 'Runs a workflow for each item of a list.',
  inputs: ['array'],
  requiredInputs: ['array'],
  outputs: () => ['joinOutcome', 'results', 'children', 'completed', 'total'],
  role: 'side-effect',
  fansOut: true,
  config: Config,
  checkInputs: ({ array }) => {
    const isTooLong = array?.type === 'static' && Array.isArray(array.value) && array.value.length > ITEMS_MAX;
    return isTooLong ? [{ path: '.array', message: `must have at most ${ITEMS_MAX} items` }] : [];
  },
  run: (context): Outcome | Promise<Outcome> => {
    const { array } = context.inputs;
    if (!Array.isArray(array)) return invalid('The input `array` must be an array.');
    if (array.length > ITEMS_MAX) return tooMany(array.length);
    const { concurrency = CONCURRENCY, onChildFailure = 'fail-fast' } = context.config as Config;
    const { children } = context;
    const lost = children.findIndex((child) => isOver(child) && child.status !== 'completed');
    if (lost >= 0 && onChildFailure === 'fail-fast') return failBecauseOf(context, lost);
    const live = children.filter((child) => !isOver(child)).length;
    const wanted = array.slice(children.length, children.length + concurrency - live);
    if (wanted.length > 0 || live > 0) {
      return { children: wanted.map((item, offset) => request(context, item, children.length + offset)) };
    }
    return gather(context);
  },
};

function request({ config, variables }: NodeContext, item: unknown, index: number): ChildRequest {
  const { workflowId, itemVariable = 'item', indexVariable, inputMapping = {} } = config as Config;
  const place = indexVariable === undefined ? {} : { [indexVariable]: index };
  return { workflowId, variables: { ...pickVariables(inputMapping, variables), ...place, [itemVariable]: item } };
}

async function failBecauseOf({ children, childResult }: NodeContext, index: number): Promise<Outcome> {
  const { runId, status } = children[index]!;
  const { error } = await childResult(runId);
  return {
    failed: {
      code: 'child_failed',
      message: `The child run of item ${index} ended as ${status}${error ? `: ${error.message}` : '.'}`,
      details: { index, childRunId: runId, childStatus: status, ...(error ? { childError: error.code } : {}) },
      retryable: false,
    },
  };
}

async function gather({ config, children, childResult }: NodeContext): Promise<Outcome> {
  const { resultVariable = 'result' } = config as Config;
  const results: unknown[] = [];
  const facts: JsonObject[] = [];
  let characters = 0;
  for (const child of children) {
    const { variables, error } = await childResult(child.runId);
    const result = child.status === 'completed' ? (own(variables, resultVariable) ?? null) : null;
    characters += JSON.stringify(result).length;
    if (characters > RESULTS_CHARACTERS_MAX) return tooLarge();
    results.push(result);
    facts.push({
      childRunId: child.runId,
      childStatus: child.status,
      ...(error ? { error: { code: error.code, message: error.message } } : {}),
    });
  }
  const completed = children.filter(({ status }: ChildState) => status === 'completed').length;
  const joinOutcome = completed === children.length ? 'satisfied' : 'partial';
  return { done: { outputs: { joinOutcome, results, children: facts, completed, total: children.length } } };
}

/** Refused before the first child starts. */
function tooMany(items: number): Outcome {
  const message = `The input \`array\` has ${items} items; a for-each takes at most ${ITEMS_MAX}. Split it into several runs.`;
  return { failed: { code: 'validation_error', message, details: { items, limit: ITEMS_MAX }, retryable: false } };
}

function tooLarge(): Outcome {
  const message = `The results have more than ${RESULTS_CHARACTERS_MAX} characters together.`;
  return { failed: { code: 'result_too_large', message, retryable: false } };
}
