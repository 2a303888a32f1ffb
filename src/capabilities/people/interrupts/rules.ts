import { OutputBudget, OutputLimitExceeded } from '../../../engine/limits/output-budget.ts';
import { answerChecks, expireInterrupt, openInterrupt, resolveInterrupt } from '../../../engine/people/interrupts.ts';
import type { Resolver } from '../../../engine/people/question.ts';
import type { Decision } from '../../../engine/run/decision.ts';
import type { OpenInterrupt, Run } from '../../../engine/run/run.ts';
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import { meetsRole, type Scope } from '../../../protocol/trust/scopes.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { problemsOf, type SchemaValidator } from '../../../runtime/validation/schema-validator.ts';
import type { Caller } from '../../request.ts';
import { KEY_LANE } from '../../trust/authorization/door.ts';
import type { InterruptRow } from './records.ts';
import type { TokenClaims } from './tokens.ts';

/** The refusal of an answer that came too late. */
const EXPIRED = refuse('interrupt_expired', 'The interrupt has expired.');

/** Resolves tokens' answers: a token says what may be done, not who does it. */
export const TOKEN_BEARER: Resolver = {
  principal: 'token-bearer',
  mayNameVoters: false,
  hasScope: () => false,
  hasRole: () => false,
  hasGroup: () => false,
};

/**
 * The caller as somebody who answers. A role is met by itself or a higher one, never by a key that has scopes instead; a
 * role that only the identity provider knows is met by its name.
 */
export function resolverOf({ subject, scopes, role, claimed }: Caller): Resolver {
  return {
    principal: subject.principal,
    person: subject.person,
    mayNameVoters: subject.lane === KEY_LANE,
    hasScope: (scope) => scopes.has(scope as Scope),
    hasRole: (wanted) => meetsRole(role, wanted) || claimed?.roles.has(wanted) === true,
    hasGroup: (wanted) => claimed?.groups.has(wanted) === true,
  };
}

/** An answer to the interrupt of a node. */
export interface NodeAnswer {
  readonly nodeId: string;
  /** Set if the answer is for one particular interrupt of the node and for no other. */
  readonly interruptId?: string | undefined;
  readonly value: unknown;
  readonly by: Resolver;
}

/** What an answer does to a run. An answer after the deadline expires the interrupt first, and is then refused. */
export async function decideAnswer(
  run: Run,
  { nodeId, interruptId, value, by }: NodeAnswer,
  { clock, schemas, outputLimits }: Pick<Runtime, 'clock' | 'schemas' | 'outputLimits'>,
): Promise<Decision> {
  const open = openInterrupt(run, nodeId, interruptId);
  if (isRefusal(open)) return open;
  const now = clock.now();
  if ((open.expiresAt ?? Number.POSITIVE_INFINITY) > now) {
    if (outgrows(run, value, outputLimits.log)) return NO_ROOM;
    return (await refuseMismatch(open, value, schemas)) ?? resolveInterrupt(run, nodeId, value, by, now);
  }
  const refusal =
    open.kind === 'approval'
      ? refuse('interrupt_already_resolved', 'The deadline has passed; the approval was rejected.')
      : EXPIRED;
  return { record: expireInterrupt(run, nodeId), refusal };
}

/** An answer of this size, as JSON, is always accepted, so that no run waits for ever. */
const SHORT_ANSWER_CHARACTERS = 10_000;
const NO_ROOM = refuse(
  'payload_too_large',
  `The log of the run has no room for such a long answer. Shorten it to at most ${SHORT_ANSWER_CHARACTERS} characters of JSON.`,
);

/** Whether the log of a run has no room for an answer: votes and refinements may be given again and again. */
function outgrows({ logCharacters }: Run, value: unknown, max: number): boolean {
  const left = Math.max(max - logCharacters, SHORT_ANSWER_CHARACTERS);
  try {
    new OutputBudget('The answer', left).takeJson(value);
    return false;
  } catch (error) {
    if (error instanceof OutputLimitExceeded) return true;
    throw error;
  }
}

async function refuseMismatch(
  open: OpenInterrupt,
  value: unknown,
  schemas: SchemaValidator,
): Promise<Refusal | undefined> {
  for (const { schema, value: part, refusal } of answerChecks(open, value)) {
    const [problem] = await problemsOf(schemas, schema, part);
    if (problem !== undefined) return refusal(problem);
  }
  return undefined;
}

/** Refuses a token whose interrupt is unknown, closed or expired. */
export function checkToken(claims: TokenClaims, row: InterruptRow | undefined, now: number): Refusal | undefined {
  if (!row || row.run_id !== claims.runId || row.node_id !== claims.nodeId) return UNKNOWN_TOKEN;
  if (row.state === 'expired') return EXPIRED;
  if (row.state !== 'open') {
    return refuse('interrupt_already_resolved', 'The interrupt was answered already, or its run no longer waits.');
  }
  const end = Math.min(claims.expiresAt, row.expires_at ?? Number.POSITIVE_INFINITY);
  return end <= now ? EXPIRED : undefined;
}

/** The refusal of a token that no key of the host signed, or whose interrupt does not exist. */
export const UNKNOWN_TOKEN = refuse('interrupt_not_found', 'No interrupt was found for this token.');
