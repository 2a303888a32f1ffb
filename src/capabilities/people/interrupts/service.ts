import { maskQuestion } from '../../../engine/masking/mask.ts';
import { namesApprovers } from '../../../engine/people/approval.ts';
import { openInterrupt } from '../../../engine/people/interrupts.ts';
import { separatesPeople } from '../../../engine/people/separation.ts';
import type { Run } from '../../../engine/run/run.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { InterruptView } from '../../../protocol/people/interrupts.ts';
import { type Change, withResult } from '../../../runtime/change.ts';
import { type MovedRun, moveRun } from '../../../runtime/move-run.ts';
import type { RunRef } from '../../../store/log.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Host } from '../../capability.ts';
import type { Caller } from '../../request.ts';
import { viewOf } from './document.ts';
import {
  AnswerDeciders,
  type Interrupts,
  type ManagementAnswer,
  type NamedInterrupt,
  type WaitingInterrupts,
} from './door.ts';
import { countOpen, findInterrupt, findOpenInterrupt, type InterruptRow, type OpenInterrupts } from './records.ts';
import { checkToken, decideAnswer, type NodeAnswer, resolverOf, TOKEN_BEARER, UNKNOWN_TOKEN } from './rules.ts';
import type { TokenKeys } from './token-keys.ts';
import { mintToken, type TokenClaims } from './tokens.ts';

/** An interrupt of this profile cannot be answered with a token: the answer needs an authenticated caller. */
const AUTH_REQUIRED = 'openwop-interrupt-auth-required';
const TOKEN_LIFE_MS = 30 * 60 * 1_000;
/** Open interrupts that are counted at most. */
const OPEN_COUNTED_MAX = 10_000;

/** What came of an answer that was given with a token. */
interface TokenResolution extends MovedRun {
  readonly runId: string;
  readonly nodeId: string;
}

type Answer = NodeAnswer & Omit<ManagementAnswer, 'decide'>;

/** Answers to interrupts, from callers and from holders of tokens. */
export class InterruptService implements Interrupts {
  readonly #host: Pick<Host, 'runtime' | 'extensions'>;
  readonly #keys: TokenKeys;

  constructor(host: Pick<Host, 'runtime' | 'extensions'>, keys: TokenKeys) {
    this.#host = host;
    this.#keys = keys;
  }

  resolve(caller: Caller, runId: string, nodeId: string, value: unknown): Promise<Change<MovedRun> | Refusal> {
    const { subject } = caller;
    return this.#answer({ from: subject, runId, nodeId, value, by: resolverOf(caller), subject });
  }

  async waiting(): Promise<WaitingInterrupts> {
    const { store, clock } = this.#host.runtime;
    const [row] = await store.read<OpenInterrupts>(countOpen(OPEN_COUNTED_MAX));
    const { count = 0, oldest = null } = row ?? {};
    return { count: Number(count), oldestMs: oldest === null ? 0 : Math.max(0, clock.now() - oldest) };
  }

  /** Answers with a token as the only credential. */
  async resolveByToken(token: string, value: unknown): Promise<Change<TokenResolution> | Refusal> {
    const row = await this.#answerable(token);
    if (isRefusal(row)) return row;
    const { tenant, run_id: runId, node_id: nodeId, interrupt_id: interruptId } = row;
    const change = await this.#answer({ from: { tenant }, runId, nodeId, interruptId, value, by: TOKEN_BEARER });
    return isRefusal(change) ? change : withResult(change, (moved) => ({ ...moved, runId, nodeId }));
  }

  /** Why a token cannot be used to answer; undefined if it can. */
  async refusalOf(token: string): Promise<Refusal | undefined> {
    const row = await this.#answerable(token);
    return isRefusal(row) ? row : undefined;
  }

  async inspect(token: string): Promise<InterruptView | Refusal> {
    const found = await this.#findByToken(token);
    if (isRefusal(found)) return found;
    const { row, claims } = found;
    const view = await this.#host.runtime.reader.view({ tenant: row.tenant }, row.run_id, ({ run }) => {
      const open = openInterrupt(run, row.node_id, row.interrupt_id);
      if (isRefusal(open)) return open;
      const masked = maskQuestion(run.plan, row.node_id, open.data, sha256Hex);
      return viewOf({ ...open, data: run.known ? run.known.mask(masked) : masked }, claims);
    });
    return view ?? NOT_FOUND;
  }

  async mint(caller: Caller, runId: string, interrupt: NamedInterrupt): Promise<string | undefined> {
    if (!caller.scopes.has('approvals:respond')) return undefined;
    const { nodeId, interruptId, expiresAt } = interrupt;
    const end = expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
    return this.#token({ runId, nodeId, interruptId }, end);
  }

  async tokenOf({ tenant, runId }: RunRef, nodeId: string): Promise<string | undefined> {
    const [row] = await this.#host.runtime.store.read<InterruptRow>(findOpenInterrupt(tenant, runId, nodeId));
    if (!row) return undefined;
    return this.#token({ runId, nodeId, interruptId: row.interrupt_id }, row.expires_at ?? Number.POSITIVE_INFINITY);
  }

  async #token(named: Pick<TokenClaims, 'runId' | 'nodeId' | 'interruptId'>, end: number): Promise<string> {
    const claims: TokenClaims = {
      ...named,
      expiresAt: Math.min(this.#host.runtime.clock.now() + TOKEN_LIFE_MS, end),
      intent: 'resolve',
    };
    return mintToken(claims, await this.#keys.signing());
  }

  /** Moves the run, by way of the capability that the management run belongs to if it is one. */
  async #answer({ nodeId, interruptId, ...answer }: Answer): Promise<Change<MovedRun> | Refusal> {
    const { runtime } = this.#host;
    const { from, runId } = answer;
    const decide = (run: Run) => decideAnswer(run, { nodeId, interruptId, ...answer }, runtime);
    const row = await runtime.reader.row(from, runId);
    const decider = this.#host.extensions(AnswerDeciders).find(({ workflowId }) => workflowId === row?.workflow_id);
    return decider ? decider.decide({ ...answer, decide }) : moveRun(runtime, from, runId, decide);
  }

  /** The open interrupt behind a token. */
  async #findByToken(token: string): Promise<{ row: InterruptRow; claims: TokenClaims } | Refusal> {
    const { store, clock } = this.#host.runtime;
    const claims = await this.#keys.read(token);
    if (!claims) return UNKNOWN_TOKEN;
    const [row] = await store.read<InterruptRow>(findInterrupt(claims.runId, claims.interruptId));
    return checkToken(claims, row, clock.now()) ?? { row: row!, claims };
  }

  /** The open interrupt that a token allows to answer. */
  async #answerable(token: string): Promise<InterruptRow | Refusal> {
    const found = await this.#findByToken(token);
    if (isRefusal(found)) return found;
    const { row, claims } = found;
    if (claims.intent !== 'resolve')
      return refuse('forbidden', 'This token allows reading the interrupt, not answering.');
    if (row.is_gate !== 1 && !(await this.#needsSignIn(row))) return row;
    const message = 'This approval needs an authenticated caller. A token is not enough.';
    return refuse('forbidden', message, { scopeRequired: 'approvals:respond' });
  }

  /** Whether the gate demands a credential, or names approvers: a token does not say who votes. */
  async #needsSignIn({ tenant, run_id, node_id }: InterruptRow): Promise<boolean> {
    const { reader } = this.#host.runtime;
    const needed = await reader.view({ tenant }, run_id, ({ run }) => {
      if (run.plan.node(node_id)?.node.config.profile === AUTH_REQUIRED) return true;
      const open = openInterrupt(run, node_id);
      return !isRefusal(open) && (namesApprovers(open.data) || separatesPeople(open.data));
    });
    return needed === true;
  }
}
