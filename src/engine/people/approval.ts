import { type Refusal, refuse } from '../../protocol/errors.ts';
import { isObject, type JsonObject } from '../../protocol/format/json.ts';
import type { EventPayload, NewEvent } from '../../protocol/running/events.ts';
import type { Decision } from '../run/decision.ts';
import { type Question, type Resolver, settle } from './question.ts';
import {
  countedVotes,
  EXCLUDED,
  exclusionOf,
  type SeparationRules,
  separatesPeople,
  standingVote,
} from './separation.ts';

/** Ways to answer an approval. */
export const APPROVAL_ACTIONS = ['accept', 'reject', 'refine', 'edit-accept', 'ask'] as const;
/** One of APPROVAL_ACTIONS. */
type ApprovalAction = (typeof APPROVAL_ACTIONS)[number];

/** What an approval shows to its approvers, and the rules by which it is decided. */
export interface ApprovalData extends SeparationRules {
  readonly artifactId: string;
  readonly artifactType: string;
  readonly title: string;
  readonly actions: readonly ApprovalAction[];
  /** The quorum; 1 by default. */
  readonly requiredApprovals?: number;
  /** Whether one rejection decides (the default), or a majority. */
  readonly rejectionPolicy?: 'single-veto' | 'majority';
  /** If any of the following is not empty, only these principals, and holders of these roles and groups, may answer. */
  readonly approversList?: readonly string[];
  readonly approverRoleRefs?: readonly string[];
  readonly approverGroupRefs?: readonly string[];
}

const REFINE_SCOPES: readonly unknown[] = ['whole', 'section', 'items'];
/** Questions that can be asked back at one approval, and the length of each. */
const QUESTIONS_MAX = 50;
const QUESTION_CHARACTERS_MAX = 2_000;

const isText = (value: unknown): boolean => typeof value === 'string';
const areTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
const REFINE_MEMBERS: readonly [string, (value: unknown) => boolean][] = [
  ['sectionPath', isText],
  ['itemIds', areTexts],
  ['tags', areTexts],
  ['text', isText],
];

/** Handles one person's answer to an approval: it decides, counts towards the quorum, or asks a question back. */
export function decideApproval(question: Question, data: ApprovalData, value: unknown, by: Resolver): Decision {
  const answer = normalise(value);
  const refusal =
    checkAnswer(data, answer) ?? checkApprover(data, answer, by) ?? checkSeparation(question, data, answer, by);
  if (refusal) return refusal;
  const voter = voterOf(answer, by);
  if (answer.action === 'ask') return askBack(question, answer, voter);
  const { nodeId, interrupt, now } = question;
  if (standingVote(interrupt, voter, now) === answer.action) return [];
  const received: NewEvent = { type: 'approval.received', nodeId, payload: receivedPayload(nodeId, answer, voter) };
  const action = answer.action as ApprovalAction;
  const person = voter === by.principal ? by.person : undefined;
  const votes = countedVotes(question.run, interrupt, { voter, person, action, at: now });
  const isDecided = decides([...votes.values()], data, action);
  return isDecided ? [received, ...settle(question, { ...answer, decidedBy: voter }, by.principal)] : [received];
}

/** Converts the older format `{decision}` to `{action}`. */
function normalise(value: unknown): JsonObject {
  if (!isObject(value)) return {};
  if (value.action !== undefined || value.decision === undefined) return value;
  const { decision, ...rest } = value;
  if (decision === 'approved') return { ...rest, action: 'accept' };
  if (decision !== 'rejected') return rest;
  const text = typeof rest.feedback === 'string' ? rest.feedback : '';
  return text === ''
    ? { ...rest, action: 'reject' }
    : { ...rest, action: 'refine', refineFeedback: { scope: 'whole', text } };
}

function checkAnswer({ actions }: ApprovalData, answer: JsonObject): Refusal | undefined {
  const wrong = (field: string, message: string): Refusal =>
    refuse('validation_error', message, { field: `resumeValue.${field}`, actions: [...actions] });
  if (!actions.includes(answer.action as ApprovalAction)) {
    return wrong('action', `action must be one of ${actions.join(', ')}.`);
  }
  if (answer.action === 'refine' && !isRefineFeedback(answer.refineFeedback)) {
    return wrong('refineFeedback', 'The action refine needs refineFeedback with a scope of whole, section or items.');
  }
  if (answer.action === 'edit-accept' && answer.editedArtifactData === undefined) {
    return wrong('editedArtifactData', 'The action edit-accept needs editedArtifactData.');
  }
  if (answer.action === 'ask' && !isQuestion(answer.question)) {
    return wrong('question', `The action ask needs a question of at most ${QUESTION_CHARACTERS_MAX} characters.`);
  }
  return undefined;
}

function isQuestion(value: unknown): boolean {
  return typeof value === 'string' && value.length <= QUESTION_CHARACTERS_MAX;
}

function isRefineFeedback(value: unknown): boolean {
  if (!isObject(value) || !REFINE_SCOPES.includes(value.scope)) return false;
  return REFINE_MEMBERS.every(([name, fits]) => value[name] === undefined || fits(value[name]));
}

/** Whether an approval says who may answer it; otherwise everybody may who can answer at all. */
export function namesApprovers(
  data: {
    readonly [K in 'approversList' | 'approverRoleRefs' | 'approverGroupRefs']?: unknown;
  },
): boolean {
  const { approversList, approverRoleRefs, approverGroupRefs } = data;
  return [approversList, approverRoleRefs, approverGroupRefs].some((names) => Array.isArray(names) && names.length > 0);
}

/** Where approvers are named, a vote is the principal's own: a label would let anybody vote in the name of an approver. */
function checkApprover(data: ApprovalData, { voter }: JsonObject, by: Resolver): Refusal | undefined {
  if (!namesApprovers(data) && !separatesPeople(data)) return undefined;
  if (voter !== undefined) {
    const message = namesApprovers(data)
      ? 'This approval names its approvers, so each votes with their own credential and without `voter`.'
      : 'This approval has rules about who votes, so each votes with their own credential and without `voter`.';
    return refuse('forbidden', message, { field: 'resumeValue.voter' });
  }
  if (!namesApprovers(data)) return undefined;
  const { approversList = [], approverRoleRefs = [], approverGroupRefs = [] } = data;
  const isApprover =
    approversList.includes(by.principal) ||
    approverRoleRefs.some((role) => by.hasRole(role)) ||
    approverGroupRefs.some((group) => by.hasGroup(group));
  return isApprover ? undefined : refuse('forbidden', 'You are not one of the approvers that this approval names.');
}

/** Whoever may not approve may still reject, ask, or say what is to be refined. */
function checkSeparation(
  { run }: Question,
  data: ApprovalData,
  { action }: JsonObject,
  by: Resolver,
): Refusal | undefined {
  if (action !== 'accept' && action !== 'edit-accept') return undefined;
  const reason = exclusionOf(run, data, by);
  return reason && refuse('forbidden', EXCLUDED[reason], { reason });
}

/**
 * A program that votes for several people names each with a label. The label is prefixed with the program's own
 * principal, which it cannot choose, and `#` occurs in no principal, so labels cannot impersonate others.
 */
function voterOf({ voter: label }: JsonObject, { principal, mayNameVoters }: Resolver): string {
  return mayNameVoters && typeof label === 'string' && label !== '' ? `${principal}#${label}` : principal;
}

function receivedPayload(nodeId: string, answer: JsonObject, decidedBy: string): EventPayload<'approval.received'> {
  const { action, feedback, refineFeedback, editedArtifactData } = answer;
  return {
    nodeId,
    action: action as 'accept',
    decidedBy,
    ...(typeof feedback === 'string' ? { comment: feedback } : {}),
    ...(action === 'refine' ? { refineFeedback: refineFeedback as JsonObject } : {}),
    ...(action === 'edit-accept' ? { editedArtifactData } : {}),
  };
}

/** Whether this vote, with the earlier ones, decides the approval. */
function decides(
  all: readonly string[],
  { requiredApprovals = 1, rejectionPolicy = 'single-veto', minDistinctPeople = 1 }: ApprovalData,
  action: ApprovalAction,
): boolean {
  if (action === 'refine') return true;
  const rejections = all.filter((vote) => vote === 'reject').length;
  const needed = rejectionPolicy === 'majority' ? Math.floor(requiredApprovals / 2) + 1 : 1;
  if (action === 'reject') return rejections >= needed;
  return (
    all.filter((vote) => vote === 'accept' || vote === 'edit-accept').length >=
    Math.max(requiredApprovals, minDistinctPeople)
  );
}

/** Records a question in a variable; the approval stays open. Each event repeats all questions, so there are few. */
function askBack({ run, nodeId }: Question, { question }: JsonObject, askedBy: string): Decision {
  const name = `_askExchanges:${nodeId}`;
  const before = run.variables[name];
  const asked = Array.isArray(before) ? before : [];
  if (asked.length >= QUESTIONS_MAX) {
    return refuse('conflict', `This approval has ${QUESTIONS_MAX} questions already. Decide, or ask elsewhere.`);
  }
  const payload = {
    name,
    ...(before === undefined ? {} : { previous: before }),
    next: [...asked, { question, askedBy }],
  };
  return [{ type: 'variable.changed', nodeId, payload: { ...payload, nodeId } }];
}
