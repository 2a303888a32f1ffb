import { type Static, Type } from 'typebox';
import { NonEmpty, Timestamp } from '../format/schema.ts';

const Count = Type.Integer({ minimum: 0 });

/** What model calls used. */
const figures = {
  calls: Type.Integer({ minimum: 0, description: 'Model calls that reported what they used' }),
  inputTokens: Count,
  outputTokens: Count,
  usd: Type.Number({ minimum: 0, description: 'Cost of the calls whose price is known' }),
  unpricedCalls: Type.Integer({ minimum: 0, description: 'Calls whose price is not known; `usd` leaves them out' }),
};

/** What the model calls of runs used, in total, over time, by workflow and by model. */
export const CostSummary = Type.Object(
  {
    ...figures,
    buckets: Type.Array(Type.Object({ start: Timestamp, ...figures }), {
      description: 'By the start of the run; buckets without model calls are left out',
    }),
    workflows: Type.Array(Type.Object({ workflowId: NonEmpty, runs: Count, ...figures }), {
      description: 'The costliest workflows; runs: those that called a model',
    }),
    models: Type.Array(Type.Object({ provider: NonEmpty, model: NonEmpty, ...figures }), {
      description: 'The costliest models',
    }),
  },
  { $id: 'CostSummary' },
);
/** The cost of a period. */
export type CostSummary = Static<typeof CostSummary>;
