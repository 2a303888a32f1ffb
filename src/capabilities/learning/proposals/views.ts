import type { Refusal } from '../../../protocol/errors.ts';
import { type Change, changeOf, unchanged } from '../../../runtime/change.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Write } from '../../../store/sql.ts';
import type { Caller } from '../../request.ts';
import { ACTIVATION_SCOPE } from './gate.ts';
import { changedSince, isNamed, type NamedArtifact } from './named-artifact.ts';
import { findViews, noteView, type ProposalRow, type ViewRow } from './records.ts';

/** Remembers which artifact each person who may apply proposals has seen last. */
export class ProposalViews {
  readonly #runtime: Pick<Runtime, 'store' | 'clock'>;

  constructor(runtime: Pick<Runtime, 'store' | 'clock'>) {
    this.#runtime = runtime;
  }

  /** Stores what is shown to a caller now. Nothing is written if they have seen it before. */
  async note(caller: Caller, shown: readonly ViewRow[]): Promise<Change> {
    if (shown.length === 0 || !caller.scopes.has(ACTIVATION_SCOPE)) return unchanged(undefined);
    const seen = await this.#seenBy(caller, shown);
    const unseen = shown.filter(({ proposal_id, sha256 }) => seen.get(proposal_id) !== sha256);
    return changeOf(undefined, this.writes(caller, unseen));
  }

  /** The writes that store what is shown to a caller; none if they may not apply proposals. */
  writes({ subject, scopes }: Caller, shown: readonly ViewRow[]): Write[] {
    if (!scopes.has(ACTIVATION_SCOPE)) return [];
    return shown.map((row) => noteView(viewerOf(subject), row, this.#runtime.clock.now()));
  }

  /** Refuses to apply, without its hash, an artifact other than the one that the caller has seen last. */
  async refuseUnseen(caller: Caller, row: ProposalRow, named: NamedArtifact): Promise<Refusal | undefined> {
    if (isNamed(named)) return undefined;
    const seen = (await this.#seenBy(caller, [row])).get(row.proposal_id) ?? row.sha256;
    return seen === row.sha256 ? undefined : changedSince(row.sha256, 'you last read it');
  }

  async #seenBy({ subject }: Caller, shown: readonly ViewRow[]): Promise<Map<string, string>> {
    const ids = shown.map(({ proposal_id }) => proposal_id);
    const rows = await this.#runtime.store.read<ViewRow>(findViews(viewerOf(subject), ids));
    return new Map(rows.map(({ proposal_id, sha256 }) => [proposal_id, sha256]));
  }
}

/** A person who reads with one key and applies with another is one viewer. */
function viewerOf({ person, principal }: Subject): string {
  return person ?? principal;
}
