import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import type { ConfigProblem, SchemaAt } from '../../../engine/definition/check.ts';
import { APPROVAL_ACTIONS, type ApprovalData } from '../../../engine/people/approval.ts';
import { isApprovalKind, type Verdict, verdictOf } from '../../../engine/people/verdict.ts';
import { defined, isObject, type JsonObject, own } from '../../../protocol/format/json.ts';
import { AnyObject, NonEmpty, OneOf } from '../../../protocol/format/schema.ts';
import { INTERRUPT_DATA, separation } from '../../../protocol/people/interrupts.ts';
import { INTERRUPT_KINDS } from '../../../protocol/running/events.ts';
import { configProblems } from '../../../runtime/catalog.ts';
import type { NodeContext, NodeType, Outcome } from '../../../runtime/node-type.ts';

const Optional = Type.Optional;
/** At most a year: timestamps far in the future could not be shown. */
const TimeoutMs = Optional(Type.Integer({ minimum: 1, maximum: 31_536_000_000 }));
const Names = Type.Array(NonEmpty);

/** What an approval gate can be told. */
export const ApprovalConfig = Type.Object({
  title: Optional(NonEmpty),
  description: Optional(Type.String()),
  prompt: Optional(Type.String()),
  actions: Optional(Type.Array(OneOf(APPROVAL_ACTIONS), { minItems: 1, uniqueItems: true })),
  artifactType: Optional(NonEmpty),
  requiredApprovals: Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
  rejectionPolicy: Optional(OneOf(['single-veto', 'majority'])),
  approversList: Optional(Names),
  approverGroupRefs: Optional(Names),
  approverRoleRefs: Optional(Names),
  audience: INTERRUPT_DATA.approval.properties.audience,
  timeoutMs: TimeoutMs,
  onTimeout: Optional(OneOf(['reject'], { description: 'What a timeout means; it never means approval' })),
  profile: Optional(Type.String()),
  ...separation,
});
type ApprovalConfig = Static<typeof ApprovalConfig>;

/** What answers to an approval have; programs that answer may add members of their own. */
const APPROVAL_OUTPUTS = ['action', 'decidedBy', 'feedback', 'refineFeedback', 'editedArtifactData', 'reason', 'voter'];

/** Asks a person to approve the values of its input ports. */
export const approvalGate: NodeType = {
  typeId: 'core.approvalGate',
  description: 'Waits until a person approves.',
  usualOutputs: () => APPROVAL_OUTPUTS,
  role: 'pure',
  isGate: true,
  config: ApprovalConfig,
  run: (context) => {
    const { answer } = context;
    if (!answer) return askForApproval(context);
    const { action, decidedBy, ...rest } = answer.value as JsonObject;
    const outputs = defined({ action, ...rest, decidedBy });
    // Refining means that earlier nodes run again. Without an edge that leads back to them, the gate asks again.
    if (action === 'refine' && !context.routes(outputs)) return askForApproval(context, rest.refineFeedback);
    return decided(context, outputs, verdictOf('approval', outputs));
  },
};

function askForApproval({ config, node, declared }: NodeContext, refineFeedback?: unknown): Outcome {
  const { timeoutMs, actions = ['accept', 'reject'], title, artifactType, ...rest } = config as ApprovalConfig;
  const { description, prompt, profile, requiredApprovals, rejectionPolicy } = rest;
  const { approversList, approverGroupRefs, approverRoleRefs, audience } = rest;
  const { excludeInitiator, excludeAuthors, minDistinctPeople, grantTtlMs } = rest;
  const data: ApprovalData & JsonObject = {
    artifactId: node.id,
    artifactType: artifactType ?? node.artifactType ?? 'approval',
    title: title ?? node.name,
    actions,
    ...defined({ description, prompt, profile, requiredApprovals, rejectionPolicy, refineFeedback }),
    ...defined({ approversList, approverGroupRefs, approverRoleRefs, audience }),
    ...defined({ excludeInitiator, excludeAuthors, minDistinctPeople, grantTtlMs }),
    // Inputs of the run must not appear in events, so only ports that the definition declares are shown.
    ...(Object.keys(declared).length > 0 ? { artifactData: declared } : {}),
  };
  return { interrupt: { kind: 'approval', data, timeoutMs } };
}

/** The outcome of an approval. One that was refused fails, unless an edge is meant for that; an edge may catch the failure. */
export function decided({ routes }: NodeContext, outputs: JsonObject, verdict: Verdict): Outcome {
  if (verdict !== 'refused' || routes(outputs)) return { done: { outputs } };
  const isTimeout = outputs.action === 'timeout' || outputs.reason === 'timeout';
  return {
    failed: isTimeout
      ? { code: 'approval_timeout', message: 'Nobody approved in time.', retryable: false }
      : { code: 'approval_rejected', message: 'It was rejected.', retryable: false },
  };
}

const ClarificationConfig = Type.Object({
  questions: Type.Array(Type.Object({ id: NonEmpty, question: NonEmpty, schema: Optional(AnyObject) }), {
    minItems: 1,
    maxItems: 100,
  }),
  contextType: Optional(Type.String()),
  timeoutMs: TimeoutMs,
});

/** Asks a person questions. */
const clarificationGate: NodeType = {
  typeId: 'core.clarificationGate',
  description: 'Asks a person questions and waits for the answers.',
  outputs: () => ['answers'],
  role: 'pure',
  config: ClarificationConfig,
  schemas: ({ questions }) => questionSchemas('.questions', questions),
  run: ({ config, answer }) => {
    if (answer) return { done: { outputs: { answers: (answer.value as JsonObject).answers } } };
    const { questions, contextType, timeoutMs } = config as Static<typeof ClarificationConfig>;
    const data = {
      questions: questions.map(({ id, question, schema }) => ({ id, question, ...(schema ? { schema } : {}) })),
      ...(contextType === undefined ? {} : { contextType }),
    };
    return { interrupt: { kind: 'clarification', data, timeoutMs } };
  },
};

const InterruptConfig = Type.Object({
  kind: OneOf(INTERRUPT_KINDS),
  data: AnyObject,
  resumeSchema: Optional(AnyObject),
  timeoutMs: TimeoutMs,
});

/** Requests an interrupt of any kind, with its data as the protocol defines it. */
const interrupt: NodeType = {
  typeId: 'core.interrupt',
  description: 'Waits for an answer of any kind.',
  role: 'pure',
  config: InterruptConfig,
  asksApproval: ({ kind }) => isApprovalKind(kind),
  usualOutputs: ({ config: { kind } }) => (kind === 'approval' ? APPROVAL_OUTPUTS : undefined),
  check: (config) => {
    const { kind, data } = config as Static<typeof InterruptConfig>;
    return dataProblems(kind, data);
  },
  schemas: (config) => {
    const { data, resumeSchema } = config as Static<typeof InterruptConfig>;
    const own = resumeSchema === undefined ? [] : [{ path: '.resumeSchema', schema: resumeSchema }];
    return [...questionSchemas('.data.questions', data.questions), ...own];
  },
  run: (context) => {
    const { config, answer } = context;
    const request = config as Static<typeof InterruptConfig>;
    if (!answer) return { interrupt: request };
    const outputs = isObject(answer.value) ? answer.value : { output: answer.value };
    const verdict = verdictOf(request.kind, answer.value);
    if (verdict === 'refine' && !context.routes(outputs)) return { interrupt: request };
    return decided(context, outputs, verdict);
  },
};

function dataProblems(kind: string, data: JsonObject): ConfigProblem[] {
  const schema = own(INTERRUPT_DATA, kind);
  if (!schema) {
    const message = 'This host does not support conversations.';
    return [{ path: '.kind', message, requiredCapability: 'conversationPrimitive' }];
  }
  return configProblems(schema, Compile(schema), data).map((misfit) => ({ ...misfit, path: `.data${misfit.path}` }));
}

function questionSchemas(path: string, questions: unknown): SchemaAt[] {
  const asked = (questions ?? []) as { schema?: unknown }[];
  return asked.flatMap(({ schema }, index) =>
    schema === undefined ? [] : [{ path: `${path}.${index}.schema`, schema }],
  );
}

/** Node types that wait for an answer. */
export const INTERRUPT_NODES: readonly NodeType[] = [approvalGate, clarificationGate, interrupt];
