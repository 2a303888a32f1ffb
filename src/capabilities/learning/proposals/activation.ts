import { expireInterrupt } from '../../../engine/people/interrupts.ts';
import type { Resolver } from '../../../engine/people/question.ts';
import type { Decision } from '../../../engine/run/commands.ts';
import { isTerminal, type Run } from '../../../engine/run/run.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { isObject } from '../../../protocol/format/json.ts';
import { type Commanded, command } from '../../../runtime/command.ts';
import { REVIEW } from '../../../runtime/management.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import { ensureWork } from '../../../store/queue.ts';
import type { Unit } from '../../../store/sql.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import { type ManagementAnswer, resolverOf } from '../../people/interrupts/door.ts';
import type { Caller } from '../../request.ts';
import { factsOf } from './document.ts';
import type { Installers } from './installers/index.ts';
import type { Candidate, Installation } from './installers/installer.ts';
import { findProposal, findProposalOfRun, insertInstalled, moveProposal, type ProposalRow } from './records.ts';
import {
  type Activated,
  gateOf,
  openWithGrant,
  passDirectly,
  passGate,
  passing,
  type Review,
  timeoutOf,
} from './review.ts';
import { LOOK_AGAIN, malformed, refuseMove, retrying, stale } from './rules.ts';
import { gateFor } from './settings.ts';
import type { Telling } from './telling.ts';

/** What came of asking for a proposal to be applied. */
export type Applied =
  | { readonly installedArtifactRef: string }
  | { readonly proposalId: string; readonly state: string; readonly approvalId: string };

type Also<T> = (outcome: T) => Unit;

/** The work item that ends a gate when nobody decided in time. */
export const GATE_TIMEOUT = 'proposal-gate';

/** Ready to be put into use: everything was checked, and this is what it takes. */
interface Ready {
  readonly row: ProposalRow;
  readonly by: Subject;
  readonly ref: string;
  readonly installation: Installation;
}

/**
 * Puts proposals into use.
 *
 * P1. What is installed is the text that was stored last, and that the gate was asked about.
 * P2. The vote that opens the gate, the installation, the state, the events and the audit entry are one transaction.
 * P3. Whoever wrote the last revision does not approve it.
 */
export class Activation {
  readonly #host: Host;
  readonly #installers: Installers;
  readonly #telling: Telling;

  constructor(host: Host, installers: Installers, telling: Telling) {
    this.#host = host;
    this.#installers = installers;
    this.#telling = telling;
  }

  apply(caller: Caller, proposalId: string, also: Also<Applied>): Promise<Applied | Refusal> {
    return retrying(async () => {
      const [row] = await this.#store.read<ProposalRow>(findProposal(caller.subject, proposalId));
      if (!row) return NOT_FOUND;
      if (row.state === 'applied' && row.uninstalled_at === null) return { installedArtifactRef: row.installed_ref! };
      const ready = refuseMove(row, 'applied') ?? (await this.#prepare(row, caller.subject));
      if (isRefusal(ready)) return ready;
      return this.#host.settings.proposals.activation === 'direct-rbac'
        ? this.#applyDirectly(ready, also)
        : this.#askGate(ready, resolverOf(caller), also);
    });
  }

  /** An answer to the gate. With the last one that it takes, what is proposed is installed. */
  readonly decide = ({
    from,
    runId,
    value,
    by,
    subject,
    decide,
    also,
  }: ManagementAnswer & { readonly also: Also<Commanded> }): Promise<Commanded | Refusal> =>
    retrying(async () => {
      const decideAs = (row: ProposalRow) => (run: Run) => refuseOwnVote(row, value, by) ?? decide(run);
      const [row] = await this.#store.read<ProposalRow>(findProposalOfRun(from.tenant, runId));
      if (!row) return NOT_FOUND;
      const foreseen = await this.#host.runtime.reader.view(from, runId, ({ run }) => decideAs(row)(run));
      const passes = Array.isArray(foreseen) && passing(foreseen) !== undefined;
      const ready = passes && subject ? await this.#prepare(row, subject) : undefined;
      if (isRefusal(ready)) return ready;
      const approvalId = await this.#openGate(row);
      return command(
        this.#host.runtime,
        from,
        runId,
        (run) => {
          const decision = decideAs(row)(run);
          const passed = Array.isArray(decision) ? passing(decision) : undefined;
          if (!Array.isArray(decision) || passed === undefined) return decision;
          if (!ready || gateOf(run)?.interruptId !== approvalId) return LOOK_AGAIN;
          return [...decision, ...passGate(activatedBy(ready, approvalId), passed)];
        },
        (done) => [
          ...(ready && done.status === 'completed'
            ? this.#installed(ready, approvalId, done)
            : this.#telling.voted(row)),
          ...also(done),
        ],
      ).then((outcome) => announced(outcome, ready));
    });

  /** Nobody approves by silence. */
  async expire(tenant: string, runId: string): Promise<number | undefined> {
    const { clock } = this.#host.runtime;
    let dueAgainAt: number | undefined;
    await command(this.#host.runtime, { tenant }, runId, (run) => {
      const { expiresAt } = gateOf(run) ?? {};
      dueAgainAt = expiresAt !== undefined && expiresAt > clock.now() ? expiresAt : undefined;
      return expiresAt === undefined || dueAgainAt !== undefined || isTerminal(run) ? [] : expireInterrupt(run, REVIEW);
    });
    return dueAgainAt;
  }

  /** What would keep it from being applied now, whoever asked. */
  async obstacle(row: ProposalRow): Promise<Refusal | undefined> {
    const installation = await this.#installationOf(row, candidateOf(row));
    return isRefusal(installation) ? installation : undefined;
  }

  /**
   * First whether it fits its kind, then whether the world is still what it was made for, then whether it has room there.
   * An installation fails when the world changes after it was prepared, so the world is looked at after that.
   */
  async #installationOf({ kind, base }: ProposalRow, candidate: Candidate): Promise<Installation | Refusal> {
    const installer = this.#installers[kind];
    const problems = await installer.check(candidate);
    if (problems.length > 0) return malformed(problems);
    const installation = await installer.install(candidate);
    const current = await installer.current(candidate);
    return current === base ? installation : stale(current);
  }

  get #store() {
    return this.#host.runtime.store;
  }

  /** Whoever finds that it cannot be installed may have looked at what somebody else has just installed. */
  async #prepare(row: ProposalRow, by: Subject): Promise<Ready | Refusal> {
    const installation = await this.#installationOf(row, candidateOf(row, by));
    if (!isRefusal(installation)) return { row, by, installation, ref: this.#host.runtime.ids.next('art-') };
    const [now] = await this.#store.read<ProposalRow>(findProposalOfRun(row.tenant, row.run_id));
    return now?.version === row.version ? installation : LOOK_AGAIN;
  }

  async #applyDirectly(ready: Ready, also: Also<Applied>): Promise<Applied | Refusal> {
    const outcome = await command(
      this.#host.runtime,
      { tenant: ready.row.tenant },
      ready.row.run_id,
      (run) => (isTerminal(run) ? LOOK_AGAIN : passDirectly(run, activatedBy(ready, null))),
      (done) => [...this.#installed(ready, null, done), ...also({ installedArtifactRef: ready.ref })],
    );
    const told = announced(outcome, ready);
    return isRefusal(told) ? told : { installedArtifactRef: ready.ref };
  }

  /** Opens the gate, once. Whoever asks for that agrees, unless it is their own work. */
  async #askGate(ready: Ready, by: Resolver, also: Also<Applied>): Promise<Applied | Refusal> {
    const { row } = ready;
    const review = this.#reviewOf(row);
    const voter = isOwnWork(row, by) ? NOBODY : by;
    let pending: string = review.approvalId;
    const outcomeOf = (isInstalled: boolean): Applied =>
      isInstalled
        ? { installedArtifactRef: ready.ref }
        : { proposalId: row.proposal_id, state: row.state, approvalId: pending };
    const outcome = await command(
      this.#host.runtime,
      { tenant: row.tenant },
      row.run_id,
      (run) => {
        const open = gateOf(run);
        if (isTerminal(run)) return LOOK_AGAIN;
        if (open && (open.expiresAt ?? Number.POSITIVE_INFINITY) <= review.at) {
          return { record: expireInterrupt(run, REVIEW), refusal: LOOK_AGAIN };
        }
        pending = open?.interruptId ?? review.approvalId;
        if (open) return OPEN_ALREADY;
        const events = openWithGrant(run, review, voter);
        const passed = passing(events);
        return passed ? [...events, ...passGate(activatedBy(ready, review.approvalId), passed)] : events;
      },
      (done) => {
        const isInstalled = done.status === 'completed';
        return [
          ...(isInstalled ? this.#installed(ready, review.approvalId, done) : this.#gateOpened(ready, review)),
          ...also(outcomeOf(isInstalled)),
        ];
      },
    );
    if (outcome === OPEN_ALREADY) return outcomeOf(false);
    const told = announced(outcome, ready);
    return isRefusal(told) ? told : outcomeOf(told.status === 'completed');
  }

  #reviewOf(row: ProposalRow): Review {
    const { tenantName, title } = factsOf(row);
    const { proposal_id: proposalId, kind, sha256 } = row;
    const { settings, runtime } = this.#host;
    const gate = gateFor(settings.proposals, { tenant: tenantName, kind });
    return { proposalId, kind, title, sha256, gate, approvalId: runtime.ids.next('int-'), at: runtime.clock.now() };
  }

  #gateOpened({ row, by }: Ready, { gate, approvalId, at, sha256 }: Review): Unit {
    const { tenant, run_id: payload } = row;
    const timeoutMs = timeoutOf(gate);
    const work = { workId: `${GATE_TIMEOUT}:${approvalId}`, kind: GATE_TIMEOUT, tenant, payload };
    return [
      moveProposal(row),
      ...(timeoutMs === undefined ? [] : [ensureWork({ ...work, dueAt: at + timeoutMs })]),
      ...this.#telling.moved(by, 'proposal.gate.open', row, { approvalId, sha256 }),
    ];
  }

  #installed({ row, by, ref, installation }: Ready, approvalId: string | null, { at }: Commanded): Unit {
    const { tenant, workspace, kind, proposal_id, text, sha256 } = row;
    const applied: ProposalRow = {
      ...row,
      state: 'applied',
      approval_id: approvalId,
      installed_ref: ref,
      updated_at: at,
    };
    return [
      moveProposal(applied),
      insertInstalled({
        ref,
        tenant,
        workspace,
        kind,
        proposal_id,
        text,
        sha256,
        replaces: installation.replaces ?? null,
        undo: JSON.stringify(installation.undo),
        installed_by: by.principal,
        installed_at: at,
      }),
      ...installation.writes,
      ...this.#telling.activated(by, applied, { installedArtifactRef: ref, sha256, approvalId }),
    ];
  }

  async #openGate({ tenant, run_id }: ProposalRow): Promise<string | null> {
    return (await this.#host.runtime.reader.view({ tenant }, run_id, ({ run }) => gateOf(run)?.interruptId)) ?? null;
  }
}

/** There is a gate, and it stays the one that it is. */
const OPEN_ALREADY = refuse('conflict', 'The gate is open already.');

/** Somebody whose vote counts for nothing. */
const NOBODY: Resolver = { principal: 'nobody', mayNameVoters: false, hasScope: () => false, hasRole: () => false };

/** It is installed where the proposal belongs, in the name of whoever decided; of its owner where nobody has yet. */
export function candidateOf(row: ProposalRow, by: Subject = ownerOf(row)): Candidate {
  const { proposal_id: proposalId, workspace, text } = row;
  return { proposalId, author: { subject: { ...by, workspace: workspace ?? undefined } }, text };
}

function ownerOf(row: ProposalRow): Subject {
  const { tenantName, principal } = factsOf(row);
  const { tenant, workspace } = row;
  return { tenant, tenantName, workspace: workspace ?? undefined, principal, issuer: 'host', lane: 'host' };
}

function activatedBy({ row, ref }: Ready, approvalId: string | null): Activated {
  return { proposalId: row.proposal_id, kind: row.kind, installedArtifactRef: ref, approvalId };
}

function announced<T extends Commanded | Refusal>(outcome: T, ready: Ready | undefined): T {
  if (!isRefusal(outcome) && outcome.status === 'completed') ready?.installation.committed?.();
  return outcome;
}

function isOwnWork({ author }: ProposalRow, { principal }: Resolver): boolean {
  return author === principal;
}

/** An override is another matter: it takes a role and a reason, and is on record as what it is. */
function refuseOwnVote(row: ProposalRow, value: unknown, by: Resolver): Decision | undefined {
  if (!isOwnWork(row, by) || !isObject(value) || value.decision !== 'granted') return undefined;
  const payload = { principal: by.principal, action: 'approval.granted', resource: REVIEW, allowed: false };
  return {
    record: [{ type: 'authorization.decided', nodeId: REVIEW, payload: { ...payload, reason: 'own-revision' } }],
    refusal: refuse('forbidden', 'You wrote the last revision. Somebody else has to approve it.', {
      reason: 'own-revision',
    }),
  };
}
