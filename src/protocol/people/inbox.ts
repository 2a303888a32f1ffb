import { type Static, Type } from 'typebox';
import { Closed, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';

const Optional = Type.Optional;

/** The kinds of what waits for a person. */
const INBOX_KINDS = ['interrupt', 'gate', 'feedback', 'proposal', 'goal', 'dispute', 'quarantine'] as const;

/** Something that waits for a person's decision. */
export const InboxItem = Type.Object(
  {
    kind: OneOf(INBOX_KINDS),
    id: NonEmpty,
    title: Type.String(),
    createdAt: Timestamp,
    ageMs: Type.Integer({ minimum: 0 }),
    link: Type.String({ description: 'Path in the web console' }),
    about: Optional(Type.String({ description: 'The beginning of what is asked, or of what it is about' })),
    runId: Optional(NonEmpty),
    workflowId: Optional(NonEmpty),
    startedBy: Optional(Type.String({ description: 'Who started the run' })),
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

const Id = Type.String({ minLength: 1, maxLength: 256 });

/** Which item somebody has open, as the inbox lists it. */
export const InboxLook = Closed(
  {
    kind: OneOf(INBOX_KINDS),
    id: Id,
    runId: Optional(Id),
    createdAt: Timestamp,
  },
  { $id: 'InboxLook' },
);
/** Names an item of the inbox; forks of a run have items that differ by `runId` alone. */
export type InboxLook = Static<typeof InboxLook>;

/** Somebody who has an item of the inbox open. */
export const InboxViewer = Type.Object(
  {
    kind: OneOf(INBOX_KINDS),
    id: NonEmpty,
    runId: Optional(NonEmpty),
    principal: Type.String({ description: 'Who looks, by the name that the audit log uses' }),
    since: Timestamp,
  },
  { $id: 'InboxViewer' },
);
/** A principal that looks at an item, each once however many windows they have open. */
export type InboxViewer = Static<typeof InboxViewer>;

/** Those who have items of the inbox open. */
export const InboxViewers = Type.Object({ items: Type.Array(InboxViewer) }, { $id: 'InboxViewers' });
/** Everybody who looks at something that the caller sees in their inbox. */
export type InboxViewers = Static<typeof InboxViewers>;

/** That somebody looks at an item, for as long as they go on saying so. */
export const InboxPresence = Type.Object(
  {
    items: Type.Array(InboxViewer, { description: 'Everybody who looks at this item, the caller among them' }),
    expiresInMs: Type.Integer({ minimum: 1, description: 'Say it again before that, or it is over' }),
  },
  { $id: 'InboxPresence' },
);
/** Who looks at an item, and how long the caller counts as one of them. */
export type InboxPresence = Static<typeof InboxPresence>;
