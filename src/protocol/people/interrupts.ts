import { type Static, type TSchema, Type } from 'typebox';
import { AnyObject, Closed, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { INTERRUPT_KINDS } from '../running/events.ts';
import { RUN_STATUSES, RunId } from '../running/runs.ts';

const Optional = Type.Optional;
const Names = Type.Array(NonEmpty);

/** Separation of duties, for every kind of approval. */
export const separation = {
  excludeInitiator: Optional(Type.Boolean({ description: 'Whoever started or forked the run may not approve' })),
  excludeAuthors: Optional(
    Type.Boolean({ description: 'Whoever answered a question or edited an artifact of the run may not approve' }),
  ),
  minDistinctPeople: Optional(
    Type.Integer({ minimum: 1, maximum: 1_000, description: 'At least this many different people must approve' }),
  ),
  grantTtlMs: Optional(
    Type.Integer({ minimum: 1, maximum: 31_536_000_000, description: 'For how long an approval counts' }),
  ),
};

/** What makes an approval a governance gate. */
const gateData = {
  gateId: Optional(NonEmpty),
  requiredRole: Optional(NonEmpty),
  requiredScope: Optional(NonEmpty),
  quorum: Optional(Type.Integer({ minimum: 1 })),
  override: Optional(Closed({ requiredRole: NonEmpty, audited: Optional(Type.Literal(true)) })),
  artifactHash: Optional(NonEmpty),
};

/** Schemas of the data that an interrupt shows to the person who answers it, by kind. */
export const INTERRUPT_DATA = {
  approval: Type.Object({
    artifactId: NonEmpty,
    artifactType: NonEmpty,
    title: NonEmpty,
    description: Optional(Type.String()),
    artifactData: Optional(Type.Unknown()),
    actions: Type.Array(OneOf(['accept', 'reject', 'refine', 'edit-accept', 'ask']), {
      minItems: 1,
      uniqueItems: true,
    }),
    requiredApprovals: Optional(Type.Integer({ minimum: 1 })),
    approversList: Optional(Names),
    rejectionPolicy: Optional(OneOf(['single-veto', 'majority'])),
    overrideBypassesQuorum: Optional(Type.Boolean()),
    approverGroupRefs: Optional(Names),
    approverRoleRefs: Optional(Names),
    audience: Optional(Closed({ subjects: Optional(Names), groups: Optional(Names), roles: Optional(Names) })),
    prompt: Optional(Type.String()),
    profile: Optional(Type.String()),
    ...separation,
    ...gateData,
  }),
  clarification: Closed({
    questions: Type.Array(Closed({ id: NonEmpty, question: NonEmpty, schema: Optional(AnyObject) }), { minItems: 1 }),
    contextType: Optional(Type.String()),
  }),
  'external-event': Closed({ eventType: NonEmpty, correlation: AnyObject }),
  custom: Closed({ customKind: NonEmpty, payload: Optional(Type.Unknown()) }),
  'low-confidence': Closed({
    agentId: Type.String({ minLength: 3, maxLength: 256 }),
    threshold: Type.Number({ minimum: 0, maximum: 1 }),
    observed: Type.Number({ minimum: 0, maximum: 1 }),
    decision: Optional(Type.Unknown()),
  }),
} as const satisfies Record<string, TSchema>;

/** Answers an interrupt. Who answers is taken from the credential. */
export const ResolveRequest = Closed({ resumeValue: Type.Unknown() }, { $id: 'ResolveRequest' });

/** The status of the run after the answer. */
export const ResolveReply = Type.Object(
  { runId: RunId, nodeId: NonEmpty, status: OneOf(RUN_STATUSES) },
  { $id: 'ResolveReply' },
);

/** An open interrupt, as shown to the holder of its token. */
export const InterruptView = Type.Object(
  {
    kind: OneOf(INTERRUPT_KINDS),
    key: NonEmpty,
    data: AnyObject,
    resumeSchema: Optional(AnyObject),
    timeoutMs: Optional(Type.Integer({ minimum: 0 })),
    runId: RunId,
    nodeId: NonEmpty,
    interruptId: NonEmpty,
    requestedAt: Timestamp,
    expiresAt: Timestamp,
  },
  { $id: 'Interrupt' },
);
/** An interrupt that can still be answered; `resumeSchema` describes valid answers. */
export type InterruptView = Static<typeof InterruptView>;
