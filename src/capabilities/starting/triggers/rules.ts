import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { inactivityOf } from '../../../engine/definition/activity.ts';
import { type Expression, expressionLanguage } from '../../../engine/expressions/expression.ts';
import { ExpressionError } from '../../../engine/expressions/expression-error.ts';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { isObject, type JsonObject } from '../../../protocol/format/json.ts';
import type { WorkflowDefinition } from '../../../protocol/running/workflows.ts';
import {
  EventTriggerConfig,
  TRIGGER_EVENTS,
  type TriggerEvent,
  WebhookTriggerConfig,
} from '../../../protocol/starting/triggers.ts';
import { configProblems } from '../../../runtime/catalog.ts';
import { checkExpression } from '../starter/rules.ts';

/** A trigger that a definition declares. */
export type WantedTrigger = { readonly isEnabled: boolean } & (
  | { readonly type: 'webhook'; readonly config: WebhookTriggerConfig }
  | { readonly type: 'event'; readonly config: EventTriggerConfig; readonly eventType: TriggerEvent }
);

/** The expressions of a trigger, compiled. */
export interface CompiledTrigger {
  readonly filter: Expression | undefined;
  readonly inputs: ReadonlyMap<string, Expression> | undefined;
  readonly deliveryId: Expression | undefined;
}

/**
 * A run that an event started may end with an event that starts another one. A chain of this many is cut off, because it
 * is most likely a loop.
 */
export const CHAIN_MAX = 10;

const LANGUAGES = {
  webhook: expressionLanguage(['body', 'headers', 'query']),
  event: expressionLanguage(['event', 'run', 'outputs']),
};

const CONFIGS: Readonly<Record<WantedTrigger['type'], { readonly schema: TSchema; readonly validator: Validator }>> = {
  webhook: { schema: WebhookTriggerConfig, validator: Compile(WebhookTriggerConfig) },
  event: { schema: EventTriggerConfig, validator: Compile(EventTriggerConfig) },
};

/** Where a sender says which delivery a request is, unless the trigger says so. */
const DELIVERY_IDS: Partial<Record<WebhookTriggerConfig['scheme'], string>> = {
  github: "headers[?'x-github-delivery']",
  stripe: 'body.?id',
  slack: 'body.?event_id',
};

type Declared = WorkflowDefinition['triggers'][number];

/** The triggers of a definition that others set off, by their ids. */
export function declaredTriggers(definition: WorkflowDefinition): ReadonlyMap<string, WantedTrigger> | Refusal {
  const wanted = new Map<string, WantedTrigger>();
  const isActive = !inactivityOf(definition);
  for (const [index, declared] of definition.triggers.entries()) {
    const { id, type, enabled } = declared;
    if (type !== 'webhook' && type !== 'event') continue;
    const problem =
      problemOf(type, declared) ?? (wanted.has(id) ? [ID, 'is also the id of another trigger'] : undefined);
    if (problem) return invalidTrigger(`triggers[${index}].${problem[0]}`, problem[1]);
    wanted.set(id, wantedOf(type, declared, isActive && enabled !== false));
  }
  return wanted;
}

const ID = 'id';
type TriggerProblem = readonly [path: string, message: string];

/** The config has been validated against the schema of its type. */
function wantedOf(
  type: WantedTrigger['type'],
  { config = {}, eventType }: Declared,
  isEnabled: boolean,
): WantedTrigger {
  if (type === 'webhook') return { type, config: config as WebhookTriggerConfig, isEnabled };
  return { type, config: config as EventTriggerConfig, eventType: eventType as TriggerEvent, isEnabled };
}

function problemOf(type: WantedTrigger['type'], declared: Declared): TriggerProblem | undefined {
  const { config = {}, eventType } = declared;
  const { schema, validator } = CONFIGS[type];
  const [wrong] = configProblems(schema, validator, config);
  if (wrong) return [`config${wrong.path}`, wrong.message];
  if (type === 'webhook') {
    if (eventType !== undefined) return ['eventType', 'is not taken by a webhook trigger; use config.filter'];
    const apart = conflictIn(config as WebhookTriggerConfig);
    if (apart) return [`config.${apart[0]}`, apart[1]];
  } else if (!TRIGGER_EVENTS.some((known) => known === eventType)) {
    return ['eventType', `must be one of ${TRIGGER_EVENTS.join(', ')}`];
  }
  return expressionProblem(type, config);
}

/** Members that do not go together would be ignored. */
function conflictIn({ scheme, hmac, toleranceSeconds, respond, waitSeconds }: WebhookTriggerConfig) {
  if (scheme === 'hmac' && !hmac) return ['hmac', 'is missing: name the header with the signature'] as const;
  if (scheme !== 'hmac' && hmac) return ['hmac', 'is for the scheme hmac'] as const;
  const signsTime = scheme === 'stripe' || scheme === 'slack' || hmac?.timestampHeader !== undefined;
  if (toleranceSeconds !== undefined && !signsTime) {
    return ['toleranceSeconds', 'is for senders that sign the time'] as const;
  }
  if (waitSeconds !== undefined && respond !== 'result') return ['waitSeconds', 'needs respond: "result"'] as const;
  return undefined;
}

function expressionProblem(type: WantedTrigger['type'], config: JsonObject): TriggerProblem | undefined {
  const { filter, deliveryId, inputs = {} } = config as WebhookTriggerConfig;
  const texts = { filter, deliveryId, ...prefixed('inputs.', inputs) };
  for (const [field, text] of Object.entries(texts)) {
    const refusal = checkExpression(field, text, LANGUAGES[type].compile);
    if (refusal) return [`config.${field}`, refusal.message];
  }
  return undefined;
}

function prefixed(prefix: string, texts: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [prefix + name, text]));
}

function invalidTrigger(path: string, message: string): Refusal {
  return { ...refuse('validation_error', `${path}: ${message}`, { fields: [{ path, message }] }), status: 422 };
}

/** Compiles the expressions of a trigger that was registered. */
export function compileTrigger(
  type: WantedTrigger['type'],
  { filter, inputs, deliveryId, scheme }: Partial<WebhookTriggerConfig>,
): CompiledTrigger {
  const { compile } = LANGUAGES[type];
  const delivery = deliveryId ?? (scheme && DELIVERY_IDS[scheme]);
  const mapped = inputs && Object.entries(inputs).map(([name, text]) => [name, compile(text)] as const);
  return {
    filter: filter === undefined ? undefined : compile(filter),
    inputs: mapped && new Map(mapped),
    deliveryId: delivery === undefined ? undefined : compile(delivery),
  };
}

type Scope = Readonly<Record<string, unknown>>;

/** Whether the filter lets something pass. As in every condition, an error counts as false. */
export function passes({ filter }: Pick<CompiledTrigger, 'filter'>, scope: Scope): boolean {
  if (!filter) return true;
  try {
    return filter({ ...scope }) === true;
  } catch (error) {
    if (error instanceof ExpressionError) return false;
    throw error;
  }
}

/** The inputs of the run, or which of them could not be computed. */
export function inputsFor(
  { inputs }: Pick<CompiledTrigger, 'inputs'>,
  scope: Scope,
  otherwise: JsonObject,
): JsonObject | Refusal {
  if (!inputs) return otherwise;
  const computed: JsonObject = {};
  for (const [name, expression] of inputs) {
    try {
      computed[name] = expression({ ...scope });
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      const field = `inputs.${name}`;
      return refuse('validation_error', `The expression of the input ${name} failed: ${error.message}.`, { field });
    }
  }
  return computed;
}

const DELIVERY_CHARACTERS_MAX = 255;

/** Which delivery a request is; undefined if its sender does not say, and then it is not told from others. */
export function deliveryIdFor({ deliveryId }: Pick<CompiledTrigger, 'deliveryId'>, scope: Scope): string | undefined {
  if (!deliveryId) return undefined;
  try {
    const id = deliveryId({ ...scope });
    const text = typeof id === 'string' || typeof id === 'number' ? String(id) : '';
    return text === '' || text.length > DELIVERY_CHARACTERS_MAX ? undefined : text;
  } catch (error) {
    if (error instanceof ExpressionError) return undefined;
    throw error;
  }
}

/** The member of a run's metadata that says which trigger started it. */
export interface TriggerMark {
  readonly triggerId: string;
  readonly deliveryId?: string;
  readonly eventType?: string;
  readonly causedByRunId?: string;
  /** How many runs before this one were started by events. */
  readonly chain?: number;
}

/** How many events have led to a run, one after the other; callers can set the metadata of runs, but not below zero. */
export function chainOf(metadata: JsonObject | undefined): number {
  const mark = metadata?.trigger;
  const chain = isObject(mark) ? mark.chain : 0;
  return typeof chain === 'number' && Number.isInteger(chain) && chain > 0 ? chain : 0;
}

/** Refuses to make a chain longer than CHAIN_MAX. */
export function refuseChain(chain: number): Refusal | undefined {
  if (chain <= CHAIN_MAX) return undefined;
  const message = `${CHAIN_MAX} runs have been started by events, each by the one before it. The chain ends here.`;
  return refuse('conflict', message, { limit: 'triggerChain', max: CHAIN_MAX });
}
