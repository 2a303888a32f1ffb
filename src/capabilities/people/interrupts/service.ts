import { maskQuestion } from '../../../engine/masking/mask.ts';
import { expireInterrupt, openInterrupt, resolveInterrupt } from '../../../engine/people/interrupts.ts';
import type { Resolver } from '../../../engine/people/question.ts';
import type { Decision } from '../../../engine/run/commands.ts';
import type { OpenInterrupt, Run } from '../../../engine/run/run.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { InterruptView } from '../../../protocol/people/interrupts.ts';
import type { ManagementWorkflow } from '../../../protocol/running/management.ts';
import { meetsRole, type Scope } from '../../../protocol/trust/scopes.ts';
import { type Commanded, command } from '../../../runtime/command.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Unit } from '../../../store/sql.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { Caller } from '../../request.ts';
import { KEY_LANE } from '../../trust/authorization/door.ts';
import { TokenKeys } from './keys.ts';
import { findInterrupt, type InterruptRow, listOpen, type OpenPlace } from './records.ts';
import { mintToken, type TokenClaims } from './tokens.ts';

export type InterruptService = ReturnType<typeof interruptService>;

/** A gate of this profile takes no tokens: whoever answers must sign in. */
const AUTH_REQUIRED = 'openwop-interrupt-auth-required';
const TOKEN_LIFE_MS = 30 * 60 * 1_000;

type Also = (outcome: Commanded) => Unit;

/** An answer to a question of one of the host's own runs, for whoever knows what else comes of it. */
export interface GivenAnswer {
  readonly from: Visibility;
  readonly runId: string;
  readonly value: unknown;
  readonly by: Resolver;
  /** Nobody in particular where a token is the only credential. */
  readonly subject?: Subject | undefined;
  /** What comes of it by the rules of the question itself. */
  readonly decide: (run: Run) => Decision;
  readonly also: Also;
}

export type Decider = (given: GivenAnswer) => Promise<Commanded | Refusal>;

interface Answering extends Omit<GivenAnswer, 'decide'> {
  readonly nodeId: string;
  /** Whoever means a certain question answers no other. */
  readonly interruptId?: string;
}

export function interruptService({ runtime }: Host) {
  const { store, clock, reader } = runtime;
  const keys = new TokenKeys(runtime);
  const deciders = new Map<string, Decider>();

  return {
    /** Who deals with answers to questions of runs of a workflow of the host's own. */
    decideWith(workflowId: ManagementWorkflow, decider: Decider): void {
      deciders.set(workflowId, decider);
    },

    resolve: (
      caller: Caller,
      runId: string,
      nodeId: string,
      value: unknown,
      also: Also,
    ): Promise<Commanded | Refusal> => {
      const { subject } = caller;
      return answer({ from: subject, runId, nodeId, value, by: resolverOf(caller), subject, also });
    },

    /** Why nothing can be answered with this token. */
    async refusalOf(token: string): Promise<Refusal | undefined> {
      const row = await answerable(token);
      return isRefusal(row) ? row : undefined;
    },

    /** Answers with a token as the only credential. */
    async resolveByToken(
      token: string,
      value: unknown,
      also: (outcome: TokenResolution) => Unit,
    ): Promise<TokenResolution | Refusal> {
      const row = await answerable(token);
      if (isRefusal(row)) return row;
      const named = (outcome: Commanded): TokenResolution => ({ ...outcome, runId: row.run_id, nodeId: row.node_id });
      const outcome = await answer({
        from: { tenant: row.tenant },
        runId: row.run_id,
        nodeId: row.node_id,
        interruptId: row.interrupt_id,
        value,
        by: TOKEN_BEARER,
        also: (done) => also(named(done)),
      });
      return isRefusal(outcome) ? outcome : named(outcome);
    },

    async inspect(token: string): Promise<InterruptView | Refusal> {
      const found = await look(token);
      if (isRefusal(found)) return found;
      const { row, claims } = found;
      const view = await reader.view({ tenant: row.tenant }, row.run_id, ({ run }) => {
        const open = openInterrupt(run, row.node_id, row.interrupt_id);
        if (isRefusal(open)) return open;
        return viewOf({ ...open, data: maskQuestion(run.plan, row.node_id, open.data, sha256Hex) }, claims);
      });
      return view ?? NOT_FOUND;
    },

    /** A fresh token for an open interrupt, for whoever may answer it. It ends with the interrupt, or before. */
    async mint(
      caller: Caller,
      runId: string,
      { nodeId, interruptId, expiresAt }: Mintable,
    ): Promise<string | undefined> {
      if (!caller.scopes.has('approvals:respond')) return undefined;
      const end = expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
      const claims: TokenClaims = {
        runId,
        nodeId,
        interruptId,
        expiresAt: Math.min(clock.now() + TOKEN_LIFE_MS, end),
        intent: 'resolve',
      };
      return mintToken(claims, await keys.signing());
    },

    list: ({ tenant, workspace }: Visibility, before: OpenPlace | undefined, limit: number): Promise<InterruptRow[]> =>
      store.read<InterruptRow>(listOpen(tenant, workspace, before, limit)),

    rotateKeys: (): Promise<Unit> => keys.rotation(),
  };

  async function answer({ nodeId, interruptId, ...given }: Answering): Promise<Commanded | Refusal> {
    const { from, runId, value, by, also } = given;
    const decideHere = (run: Run): Decision => decide(run, nodeId, value, by, interruptId);
    let decider: Decider | undefined;
    const outcome = await command(
      runtime,
      from,
      runId,
      (run) => {
        decider = deciders.get(run.facts.workflowId);
        return decider ? ELSEWHERE : decideHere(run);
      },
      also,
    );
    return decider ? decider({ ...given, decide: decideHere }) : outcome;
  }

  /** The interrupt behind a token. What was answered, or ended otherwise, is over for every token of it. */
  async function look(token: string): Promise<{ row: InterruptRow; claims: TokenClaims } | Refusal> {
    const claims = await keys.read(token);
    const [row] = claims ? await store.read<InterruptRow>(findInterrupt(claims.runId, claims.interruptId)) : [];
    if (!claims || !row || row.run_id !== claims.runId || row.node_id !== claims.nodeId) {
      return refuse('interrupt_not_found', 'There is no such interrupt.');
    }
    if (row.state === 'expired') return EXPIRED;
    if (row.state !== 'open') return refuse('interrupt_already_resolved', 'This was answered already, or is over.');
    const isLate = Math.min(claims.expiresAt, row.expires_at ?? Number.POSITIVE_INFINITY) <= clock.now();
    return isLate ? EXPIRED : { row, claims };
  }

  /** The interrupt that a token allows to answer. */
  async function answerable(token: string): Promise<InterruptRow | Refusal> {
    const found = await look(token);
    if (isRefusal(found)) return found;
    const { row, claims } = found;
    if (claims.intent !== 'resolve') return refuse('forbidden', 'This token allows to look, not to answer.');
    if (row.is_gate !== 1 && !(await isAuthRequired(row))) return row;
    return refuse('forbidden', 'This approval must be given by somebody who is signed in.', {
      scopeRequired: 'approvals:respond',
    });
  }

  async function isAuthRequired({ tenant, run_id, node_id }: InterruptRow): Promise<boolean> {
    const profile = await reader.view({ tenant }, run_id, ({ run }) => run.plan.node(node_id)?.node.config.profile);
    return profile === AUTH_REQUIRED;
  }

  /** Whoever touches a question whose time is up closes it first; then it is too late for their answer. */
  function decide(run: Run, nodeId: string, value: unknown, by: Resolver, interruptId?: string): Decision {
    const open = openInterrupt(run, nodeId, interruptId);
    if (isRefusal(open)) return open;
    if ((open.expiresAt ?? Number.POSITIVE_INFINITY) > clock.now()) {
      return resolveInterrupt(run, nodeId, value, by);
    }
    const refusal =
      open.kind === 'approval' ? refuse('interrupt_already_resolved', 'Time was up: it is rejected.') : EXPIRED;
    return { record: expireInterrupt(run, nodeId), refusal };
  }
}

/** What of an open interrupt a token names. */
export interface Mintable {
  readonly nodeId: string;
  readonly interruptId: string;
  readonly expiresAt?: string;
}

export interface TokenResolution extends Commanded {
  readonly runId: string;
  readonly nodeId: string;
}

/** Nothing is decided here. */
const ELSEWHERE = refuse('conflict', 'This is decided on elsewhere.');

const EXPIRED = refuse('interrupt_expired', 'The time to answer this has passed.');

/** Nobody in particular: a token says what may be done, not who does it. */
const TOKEN_BEARER: Resolver = {
  principal: 'token-bearer',
  mayNameVoters: false,
  hasScope: () => false,
  hasRole: () => false,
};

/** Roles are met by themselves or a higher one, and never by a key that was given scopes instead. */
export function resolverOf({ subject, scopes, role }: Caller): Resolver {
  return {
    principal: subject.principal,
    mayNameVoters: subject.lane === KEY_LANE,
    hasScope: (scope) => scopes.has(scope as Scope),
    hasRole: (wanted) => meetsRole(role, wanted),
  };
}

/** Time is up for whoever holds a token when it ends, which is when the interrupt does or before. */
function viewOf(open: OpenInterrupt, { runId, nodeId, expiresAt }: TokenClaims): InterruptView {
  const { kind, key, data, resumeSchema, interruptId, requestedAt } = open;
  return {
    kind,
    key,
    data,
    ...(resumeSchema ? { resumeSchema } : {}),
    ...(open.expiresAt === undefined ? {} : { timeoutMs: open.expiresAt - requestedAt }),
    runId,
    nodeId,
    interruptId,
    requestedAt: new Date(requestedAt).toISOString(),
    expiresAt: new Date(expiresAt).toISOString(),
  };
}
