import { type Static, Type } from 'typebox';
import { Closed, OneOf } from '../format/schema.ts';
import { RunId } from '../running/runs.ts';
import { ARTIFACT_KINDS, Proposal } from './proposals.ts';

const SOURCE_RUNS_MAX = 1_000;

export const SynthesizeRequest = Closed(
  {
    kinds: Type.Optional(
      Type.Array(OneOf(ARTIFACT_KINDS), { uniqueItems: true, description: 'What may be drafted; everything' }),
    ),
    sourceRunIds: Type.Optional(
      Type.Array(RunId, { minItems: 1, maxItems: SOURCE_RUNS_MAX, description: 'Look at these runs alone' }),
    ),
    since: Type.Optional(
      Type.String({ format: 'date-time', maxLength: 64, description: 'Look at runs started from then on' }),
    ),
  },
  { $id: 'SynthesizeRequest' },
);
export type SynthesizeRequest = Static<typeof SynthesizeRequest>;

export const SynthesizeReply = Type.Object(
  {
    created: Type.Array(Proposal),
    scannedRuns: Type.Integer({ minimum: 0, description: 'Runs that have ended since the last look, read now' }),
  },
  { $id: 'SynthesizeReply' },
);
export type SynthesizeReply = Static<typeof SynthesizeReply>;
