import type { Scope } from '../../../protocol/trust/scopes.ts';
import { extensionPoint } from '../../capability.ts';
import type { Caller } from '../../request.ts';

/** Something that waits for a person. */
export interface InboxEntry {
  readonly kind: 'interrupt' | 'gate' | 'feedback' | 'proposal' | 'goal' | 'dispute' | 'quarantine';
  readonly id: string;
  readonly title: string;
  readonly createdAt: number;
  /** Whose workspace it belongs to; null if it belongs to the whole tenant. */
  readonly workspace: string | null;
  /** The console path where it is dealt with. */
  readonly link: string;
  /** The beginning of what is asked, or of what it is about. */
  readonly about?: string;
  readonly runId?: string;
  readonly nodeId?: string;
  readonly proposalId?: string;
  readonly goalId?: string;
  readonly artifactHash?: string;
  readonly requiredScope?: string;
}

/** A position in the inbox: newest first, ties by id, then by run. */
export interface InboxPlace {
  readonly at: number;
  readonly id: string;
  readonly runId: string;
}

/** What one capability has waiting for a person. */
export interface InboxSource {
  /** The kinds that its entries may have. */
  readonly kinds: readonly InboxEntry['kind'][];
  /** Callers without this scope see none of its entries. */
  readonly scope?: Scope;
  /** Entries before a position, newest first. */
  list(caller: Caller, before: InboxPlace | undefined, limit: number): Promise<InboxEntry[]>;
}

/** Where capabilities add what they have waiting for a person. */
export const InboxSources = extensionPoint<InboxSource>('inbox.sources');
