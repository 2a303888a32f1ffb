import { type Static, type TSchema, Type } from 'typebox';
import { Closed, NonEmpty, OneOf } from '../format/schema.ts';

const Optional = Type.Optional;
const Count = Type.Integer({ minimum: 0 });
const Amount = Type.Number({ minimum: 0 });

/** Limits on a run's spending. A dimension without a limit is unbounded. */
export const BudgetPolicy = Closed({
  maxTokens: Optional(Type.Integer({ minimum: 1, description: 'Input and output tokens of all model calls' })),
  maxCostUsd: Optional(Type.Number({ minimum: 0 })),
  maxToolCalls: Optional(Type.Integer({ minimum: 1 })),
  maxRetries: Optional(Type.Integer({ minimum: 0, description: 'Retries of nodes and of invalid model responses' })),
  modelAllow: Optional(
    Type.Array(Type.String(), { uniqueItems: true, description: 'Allowed models; `*` matches any text' }),
  ),
  modelDeny: Optional(
    Type.Array(Type.String(), { uniqueItems: true, description: 'Denied models; takes precedence over modelAllow' }),
  ),
  thresholdPercent: Optional(Type.Number({ minimum: 0, maximum: 100 })),
  onExhaustion: Optional(OneOf(['fail', 'interrupt'])),
});
/** A valid budget policy; an exhausted budget fails the run, as `onExhaustion: interrupt` is refused. */
export type BudgetPolicy = Static<typeof BudgetPolicy>;

const BudgetDimension = OneOf(['tokens', 'cost', 'toolCalls', 'retries']);
const Consumption = { dimension: BudgetDimension, consumed: Amount, limit: Amount };

/** Tokens and cost of one model call. It contains no credential and no content. */
export const ProviderUsage = Closed({
  provider: NonEmpty,
  model: NonEmpty,
  inputTokens: Count,
  outputTokens: Count,
  totalTokens: Optional(Count),
  costEstimateUsd: Optional(Amount),
  currency: Optional(Type.String({ pattern: '^[A-Z]{3}$' })),
  cacheHit: Optional(Type.Boolean()),
  cacheReadTokens: Optional(Count),
  cacheWriteTokens: Optional(Count),
  nodeId: Optional(NonEmpty),
  traceId: Optional(NonEmpty),
});
/** The usage that a model call reports; also the payload of `provider.usage`. */
export type ProviderUsage = Static<typeof ProviderUsage>;

/** Why a model was asked again. */
const RETRY_REASONS = ['schema-violation', 'truncation', 'refusal', 'parse-error', 'unknown'] as const;
/** One of RETRY_REASONS. */
export type RetryReason = (typeof RETRY_REASONS)[number];

const ModelTarget = { nodeId: NonEmpty, provider: NonEmpty, model: NonEmpty };

/** Events about model calls and the run's budget. */
export const MODEL_EVENTS = {
  'provider.usage': { tier: 'debug', payload: ProviderUsage },
  'envelope.retry.attempted': {
    tier: 'debug',
    payload: Closed({
      nodeId: NonEmpty,
      attempt: Type.Integer({ minimum: 1, maximum: 16 }),
      reason: OneOf(RETRY_REASONS),
      previousError: Optional(Type.String()),
    }),
  },
  'envelope.retry.exhausted': {
    tier: 'debug',
    payload: Closed({
      nodeId: NonEmpty,
      totalAttempts: Type.Integer({ minimum: 1 }),
      finalReason: OneOf(RETRY_REASONS),
      finalError: Optional(Type.String()),
    }),
  },
  'envelope.refusal': {
    tier: 'debug',
    payload: Closed({
      ...ModelTarget,
      refusalText: Optional(Type.String()),
      safetyCategory: Optional(Type.String()),
    }),
  },
  'envelope.truncated': {
    tier: 'debug',
    payload: Closed({
      ...ModelTarget,
      stopReason: OneOf(['max_tokens', 'length', 'stop_sequence', 'unknown']),
      partialPayloadAvailable: Optional(Type.Boolean()),
      outputTokenCount: Optional(Count),
    }),
  },
  'envelope.recovery.applied': {
    tier: 'debug',
    payload: Closed({
      nodeId: NonEmpty,
      path: OneOf(['direct', 'jsonrepair', 'markdown-fence', 'brace-walker', 'custom']),
      byteOffset: Optional(Count),
    }),
  },
  'model.capability.insufficient': {
    tier: 'debug',
    payload: Closed({
      ...ModelTarget,
      missingCapabilities: Type.Array(NonEmpty, { uniqueItems: true }),
      fallbackAttempted: Optional(Type.Boolean()),
    }),
  },
  'budget.reserved': {
    tier: 'debug',
    payload: Closed({
      effectiveBudget: Closed({
        maxTokens: Optional(Count),
        maxCostUsd: Optional(Amount),
        maxToolCalls: Optional(Count),
        maxRetries: Optional(Count),
      }),
      scope: OneOf(['run', 'workflow', 'agent', 'project']),
    }),
  },
  'budget.consumed': { tier: 'debug', payload: Closed({ ...Consumption, remaining: Optional(Type.Number()) }) },
  'budget.threshold.crossed': {
    tier: 'debug',
    payload: Closed({ ...Consumption, percent: Type.Number({ minimum: 0, maximum: 100 }) }),
  },
  'budget.exhausted': { tier: 'debug', payload: Closed(Consumption) },
} as const satisfies Record<string, { readonly tier: 'debug'; readonly payload: TSchema }>;

/** The models that nodes may name, by provider. */
export const ModelCatalog = Type.Object(
  {
    items: Type.Array(
      Type.Object({ provider: NonEmpty, models: Type.Array(NonEmpty, { description: 'The first is the default' }) }),
    ),
  },
  { $id: 'ModelCatalog' },
);
/** The providers of a host with their models. */
export type ModelCatalog = Static<typeof ModelCatalog>;
