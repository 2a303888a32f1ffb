import type { RunEvent } from '../../src/client/index.ts';
import { isObject, type JsonObject } from '../../src/protocol/format/json.ts';
import type { ConsoleSession } from '../../src/protocol/operations/console.ts';
import type { InboxItem } from '../../src/protocol/people/inbox.ts';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import { isScope, meetsRole, ROLE_SCOPES, ROLES } from '../../src/protocol/trust/scopes.ts';
import type { Schema } from '../parts/schema.ts';
import { keyOf } from './queue.ts';

/** What a node waits for, as the log has it. */
export interface Asked {
  readonly interruptId: string;
  readonly kind: string;
  readonly data: JsonObject;
  readonly resumeSchema?: JsonObject;
  readonly askedAt: string;
  readonly expiresAt?: string;
  /** Who has voted so far, and how. */
  readonly votes: readonly Vote[];
}

interface Vote {
  readonly by: string;
  readonly action: string;
}

/** The open question of a node; undefined if nothing is open, or the log has not come that far. */
export function askedBy(events: readonly RunEvent[], nodeId: string): Asked | undefined {
  const own = events.filter((event) => event.nodeId === nodeId);
  const last = own.findLastIndex(({ type }) => type === 'interrupt.requested');
  const request = own[last];
  if (request?.type !== 'interrupt.requested') return undefined;
  const later = own.slice(last + 1);
  if (later.some(({ type }) => type === 'interrupt.resolved' || type === 'node.failed')) return undefined;
  const suspended = own.slice(0, last).findLast(({ type }) => type === 'node.suspended');
  const { kind, data, resumeSchema, timeoutMs } = request.payload;
  const end = timeoutMs === undefined ? undefined : new Date(Date.parse(request.timestamp) + timeoutMs).toISOString();
  return {
    interruptId: suspended?.type === 'node.suspended' ? suspended.payload.interruptId : '',
    kind,
    data: isObject(data) ? data : {},
    askedAt: request.timestamp,
    votes: later.flatMap(voteIn),
    ...(isObject(resumeSchema) ? { resumeSchema } : {}),
    ...(end === undefined ? {} : { expiresAt: end }),
  };
}

const KINDS: Readonly<Record<string, string>> = {
  approval: 'Approval',
  clarification: 'Question',
  'external-event': 'Waiting for an event',
  'low-confidence': 'An agent is unsure',
};

/** What such a question is called. */
export function kindInWords({ kind, data }: Pick<Asked, 'kind' | 'data'>): string {
  if (typeof data.gateId === 'string') return 'Gate';
  return Object.hasOwn(KINDS, kind) ? KINDS[kind]! : 'Question';
}

/** The question in a line, as the inbox has it. */
export function titleOf({ data }: Pick<Asked, 'data'>, nodeName: string): string {
  const [first] = Array.isArray(data.questions) ? data.questions.filter(isObject) : [];
  const texts = [data.title, first?.question, data.eventType, data.customKind];
  return texts.find((text): text is string => typeof text === 'string' && text !== '') ?? nodeName;
}

/** What names the question in the inbox. */
export function inboxKeyOf({ interruptId, data }: Pick<Asked, 'interruptId' | 'data'>): string {
  return keyOf({ kind: typeof data.gateId === 'string' ? 'gate' : 'interrupt', id: interruptId });
}

function voteIn({ type, payload }: RunEvent): Vote[] {
  const { decidedBy, principal, action } = payload as JsonObject;
  if (type === 'approval.received') return [{ by: String(decidedBy ?? 'somebody'), action: String(action) }];
  return type === 'approval.granted' ? [{ by: String(principal), action: 'granted' }] : [];
}

/** Why the visitor may not answer at all, or may not approve; both absent if they may. */
export interface Hindrance {
  readonly answering?: string;
  readonly approving?: string;
}

const names = (value: unknown): readonly string[] => (Array.isArray(value) ? value.map(String) : []);

/** Who has a scope, as the end of a sentence. */
function holdersOf(scope: unknown): string {
  const role = ROLES.find((each) => isScope(scope) && ROLE_SCOPES[each].includes(scope));
  if (role === undefined) return 'your key does not have';
  return role === ROLES.at(-1) ? `${role}s have` : `${role}s and higher roles have`;
}

/** What keeps somebody from answering, as far as the page can know; the host has the last word. */
export function hindranceOf(
  item: Pick<InboxItem, 'requiredScope'>,
  asked: Asked,
  me: ConsoleSession,
  run: RunSnapshot | undefined,
): Hindrance {
  const { scopes, role, principal } = me;
  const { data } = asked;
  const scope = ['approvals:respond', item.requiredScope, data.requiredScope].find(
    (needed) => typeof needed === 'string' && !scopes.includes(needed),
  );
  if (scope !== undefined)
    return { answering: `Answering needs the scope ${String(scope)}, which ${holdersOf(scope)}.` };
  if (data.requiredRole !== undefined && !meetsRole(role, data.requiredRole)) {
    return { answering: `Only the role ${String(data.requiredRole)} may decide this.` };
  }
  const [people, roles, groups] = [data.approversList, data.approverRoleRefs, data.approverGroupRefs].map(names);
  const all = [...people!, ...roles!.map((name) => `the role ${name}`), ...groups!.map((name) => `the group ${name}`)];
  // Only the host knows the groups of somebody who signed in with an identity provider.
  const isNamed =
    people!.includes(principal) || roles!.some((name) => meetsRole(role, name)) || me.credential === 'token';
  if (all.length > 0 && !isNamed) return { answering: `Only ${all.join(', ')} may answer this.` };
  const starter = run?.owner?.principal;
  if (data.excludeInitiator === true && starter !== undefined && (starter === principal || starter === me.person)) {
    return { approving: 'You started this run, so somebody else has to approve it. You may still reject it.' };
  }
  return {};
}

/** The form of a question that is answered with values, not with a decision; undefined for decisions. */
export function answerSchemaOf({ kind, data, resumeSchema }: Asked): Schema | undefined {
  if (kind === 'clarification') return questionsSchema(data.questions);
  if (kind === 'approval' || kind === 'low-confidence' || kind === 'external-event') return undefined;
  return (resumeSchema as Schema | undefined) ?? { type: 'string', title: 'Your answer', maxLength: 10_000 };
}

function questionsSchema(questions: unknown): Schema {
  const asked = Array.isArray(questions) ? questions.filter(isObject) : [];
  const fields = asked.map(({ id, question, schema }): [string, Schema] => [
    String(id),
    { type: 'string', ...(isObject(schema) ? schema : {}), title: String(question) },
  ]);
  return { type: 'object', properties: Object.fromEntries(fields), required: fields.map(([id]) => id) };
}

/** The answer that a filled-in form gives. */
export function answerOf({ kind }: Asked, value: unknown): unknown {
  return kind === 'clarification' ? { answers: value } : value;
}

/** A decision of somebody, before it is put into the words of its kind of gate. */
export interface Ruling {
  readonly action: 'accept' | 'reject' | 'refine' | 'edit-accept' | 'ask' | 'override';
  readonly text?: string;
  readonly edited?: unknown;
}

/** What the host is told; a gate gets back the hash of what was looked at. */
export function rulingOf({ kind, data }: Asked, { action, text, edited }: Ruling): JsonObject {
  if (typeof data.gateId === 'string') {
    const decision = { accept: 'granted', override: 'overridden' }[action as string] ?? 'rejected';
    const hash = data.artifactHash === undefined ? {} : { artifactHash: data.artifactHash };
    return { decision, ...hash, ...(text ? { reason: text } : {}) };
  }
  if (action === 'edit-accept') {
    return kind === 'low-confidence' ? { decision: edited } : { action, editedArtifactData: edited };
  }
  if (action === 'refine') return { action, refineFeedback: { scope: 'whole', text: text ?? '' } };
  if (action === 'ask') return { action, question: text ?? '' };
  return { action, ...(text ? { feedback: text } : {}) };
}
