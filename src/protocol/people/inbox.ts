import { type Static, Type } from 'typebox';
import { NonEmpty, OneOf, Timestamp } from '../format/schema.ts';

const Optional = Type.Optional;

/** Something that waits for a person's decision. */
export const InboxItem = Type.Object(
  {
    kind: OneOf(['interrupt', 'gate', 'feedback', 'proposal', 'goal', 'dispute', 'quarantine']),
    id: NonEmpty,
    title: Type.String(),
    createdAt: Timestamp,
    ageMs: Type.Integer({ minimum: 0 }),
    link: Type.String({ description: 'Path in the web console' }),
    runId: Optional(NonEmpty),
    nodeId: Optional(NonEmpty),
    proposalId: Optional(NonEmpty),
    goalId: Optional(NonEmpty),
    artifactHash: Optional(NonEmpty),
    requiredScope: Optional(Type.String({ description: 'Scope needed to act on the item' })),
  },
  { $id: 'InboxItem' },
);
/** An inbox entry; which of the ids it has depends on `kind`. */
export type InboxItem = Static<typeof InboxItem>;
