import { type Static, Type } from 'typebox';
import { Closed, OneOf } from '../format/schema.ts';
import { RUN_STATUSES } from '../running/run-status.ts';

const Optional = Type.Optional;

/** What is observed; set exactly one member. Observing has no side effects. */
export const Observation = Closed(
  {
    http: Optional(
      Closed(
        { url: Type.String({ pattern: '^https?://', maxLength: 2_048 }) },
        { description: 'A page to fetch; provides `status` and `body`' },
      ),
    ),
    kv: Optional(
      Closed(
        {
          namespace: Type.String({ minLength: 1, maxLength: 128 }),
          key: Type.String({ minLength: 1, maxLength: 512 }),
        },
        { description: 'A stored value; provides `found` and `value`' },
      ),
    ),
    runs: Optional(
      Closed(
        {
          workflowId: Optional(Type.String({ minLength: 1, maxLength: 128 })),
          status: Optional(OneOf(RUN_STATUSES)),
          tag: Optional(Type.String({ minLength: 1, maxLength: 256 })),
        },
        { description: 'Runs of this tenant; provides `count` (at most 1000) and `newest` (a run id)' },
      ),
    ),
  },
  { $id: 'Observation' },
);
/** A well-formed observation; `checkObservation` refuses one with several members or none. */
export type Observation = Static<typeof Observation>;

/** A CEL expression over an observation. */
export const ObservationExpression = Type.String({ minLength: 1, maxLength: 4_096 });
