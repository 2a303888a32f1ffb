import { type Static, Type } from 'typebox';
import { NonEmpty, OneOf } from '../format/schema.ts';

const Optional = Type.Optional;
const Count = Type.Integer({ minimum: 0 });

/** Something that uses what a proposal would change. */
export const ImpactedUse = Type.Object(
  {
    kind: OneOf(['workflow', 'agent', 'schedule', 'goal']),
    id: NonEmpty,
    nodeId: Optional(Type.String({ description: 'The node of the workflow; absent for its defaults' })),
    ref: Type.String({ description: 'How it names what would change' }),
    via: Optional(Type.String({ description: 'The agent or workflow through which it does' })),
  },
  { $id: 'ImpactedUse' },
);
/** A use: by name it gets the change, by version it stays as it is. */
export type ImpactedUse = Static<typeof ImpactedUse>;

/** What applying a proposal would change for what exists already. */
export const ProposalImpact = Type.Object(
  {
    proposalId: NonEmpty,
    changes: Type.Array(Type.String(), { description: 'What would change, such as `prompt:digest`' }),
    affected: Type.Array(ImpactedUse, { description: 'What would get the change, because it names no version' }),
    pinned: Type.Array(ImpactedUse, { description: 'What does not change, because it pins a version' }),
    runsLastWeek: Type.Object(
      { total: Count, byWorkflow: Type.Record(Type.String(), Count) },
      { description: 'Runs of the affected workflows in the last seven days' },
    ),
    addedRunsPerWeek: Optional(Type.Integer({ minimum: 0, description: 'Runs that an automation would start' })),
    isPartial: Optional(Type.Literal(true, { description: 'There are more workflows than were looked at' })),
  },
  { $id: 'ProposalImpact' },
);
/** The blast radius of a proposal. */
export type ProposalImpact = Static<typeof ProposalImpact>;
