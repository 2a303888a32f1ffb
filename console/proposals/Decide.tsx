import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Archive, Check, Pencil, ShieldAlert, Trash2, X } from 'lucide-react';
import { useState } from 'react';
import type { Proposal, ProposalEvidence } from '../../src/protocol/learning/proposals.ts';
import { meetsRole, type Role } from '../../src/protocol/trust/scopes.ts';
import { client } from '../api/client.ts';
import { applyProposal } from '../api/proposals.ts';
import { useMay, useSession } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { Copy } from '../parts/Copy.tsx';
import { Dialog } from '../parts/Dialog.tsx';
import { Field } from '../parts/Field.tsx';
import { useKeys } from '../parts/keys.ts';
import { Principals } from '../parts/Principal.tsx';
import { complain, say } from '../parts/toasts.tsx';
import styles from './ProposalPage.module.css';
import { Uninstall } from './Uninstall.tsx';

interface DecideProps {
  readonly proposal: Proposal;
  readonly evidence: ProposalEvidence;
  readonly isRevising: boolean;
  readonly onRevise: () => void;
}

/** Something that somebody may do with the proposal now. */
interface Deed {
  readonly keys: string;
  readonly label: string;
  readonly kind?: 'main' | 'plain' | 'danger';
  readonly icon: React.ReactNode;
  readonly act: () => void;
}

/** Whether it can be applied, the hash of what would be, and the decision. */
export function Decide(props: DecideProps) {
  const { proposal, evidence } = props;
  const [opened, open] = useState<'reject' | 'override' | 'uninstall'>();
  const deeds = useDeeds(props, open);
  useKeys('This proposal', deeds);
  const { artifactHash, obstacle, uninstalledAt } = evidence;
  const isPending = proposal.state === 'draft' || proposal.state === 'revised';
  const ref = proposal.activation?.installedArtifactRef;
  const close = (): void => open(undefined);
  return (
    <section className={styles.decide} aria-label="Decision">
      {isPending && obstacle && (
        <p className={styles.warning}>
          It cannot be applied now: {obstacle.message}
          {obstacle.reason === 'stale' &&
            ' Revise it, even only with a note, to compare it with what is installed today.'}
        </p>
      )}
      <Gate evidence={evidence} />
      {ref !== undefined && (
        <p>
          {uninstalledAt === undefined ? 'Installed as' : 'Was installed as'} <code>{ref}</code>.
        </p>
      )}
      <p className={styles.hash}>
        <span className="quiet">SHA-256 of what is {isPending ? 'proposed' : 'kept'}</span> <code>{artifactHash}</code>
        <Copy text={artifactHash} label="hash" />
      </p>
      <div className={styles.actions}>
        {deeds.map(({ keys, label, kind = 'plain', icon, act }) => (
          <Button key={keys} kind={kind} icon={icon} aria-keyshortcuts={keys} onClick={act}>
            {label}
          </Button>
        ))}
      </div>
      <WhoMay {...props} />
      {opened === 'reject' && <Reject proposalId={proposal.id} onClose={close} />}
      {opened === 'override' && <Override evidence={evidence} onClose={close} />}
      {opened === 'uninstall' && ref !== undefined && <Uninstall artifact={{ ref }} onClose={close} />}
    </section>
  );
}

function useDeeds(
  { proposal, evidence, isRevising, onRevise }: DecideProps,
  open: (what: 'reject' | 'override' | 'uninstall') => void,
): readonly Deed[] {
  const may = useMay();
  const { role, principal } = useSession();
  const { id, state } = proposal;
  const { artifactHash, obstacle, gate, uninstalledAt } = evidence;
  const refresh = useRefresh(id);
  const apply = useMutation({
    mutationFn: async (): Promise<object> => (gate ? grant(evidence, gate.nodeId) : applyProposal(id, artifactHash)),
    onSuccess: (reply) => {
      const pending = gate ? 'Your vote is recorded.' : 'Approval is requested.';
      say('installedArtifactRef' in reply ? 'The proposal is applied.' : pending);
      refresh();
    },
    onError: complain,
  });
  const archive = useMutation({ mutationFn: () => client.archiveProposal(id), onSuccess: refresh, onError: complain });
  const isPending = state === 'draft' || state === 'revised';
  const [canApply, canWrite] = [may('proposals:activate'), may('proposals:write')];
  const canVote = canApply && whyNot(evidence, principal, role) === undefined;
  return [
    isPending &&
      canVote &&
      !obstacle &&
      !isRevising && {
        keys: 'a',
        label: gate ? 'Approve' : 'Apply',
        kind: 'main' as const,
        icon: <Check />,
        act: () => apply.mutate(),
      },
    isPending &&
      gate &&
      role === 'owner' && {
        keys: 'o',
        label: 'Override the gate',
        icon: <ShieldAlert />,
        act: () => open('override'),
      },
    isPending && canWrite && !isRevising && { keys: 'e', label: 'Revise', icon: <Pencil />, act: onRevise },
    isPending &&
      canWrite && {
        keys: 'r',
        label: 'Reject',
        kind: 'danger' as const,
        icon: <X />,
        act: () => open('reject'),
      },
    state === 'applied' &&
      uninstalledAt === undefined &&
      canApply && {
        keys: 'u',
        label: 'Uninstall',
        kind: 'danger' as const,
        icon: <Trash2 />,
        act: () => open('uninstall'),
      },
    canWrite &&
      (isPending || state === 'rejected' || uninstalledAt !== undefined) &&
      state !== 'archived' && {
        keys: 'z',
        label: 'Archive',
        icon: <Archive />,
        act: () => archive.mutate(),
      },
  ].filter((deed) => typeof deed === 'object');
}

/** Votes for exactly what was looked at. */
function grant({ runId, artifactHash }: ProposalEvidence, nodeId: string) {
  return client.resolveInterruptByRun(runId, nodeId, { resumeValue: { decision: 'granted', artifactHash } });
}

/** Why somebody with the scope cannot vote at the open gate; undefined if they can, or no gate is open. */
function whyNot({ gate, revisions }: ProposalEvidence, principal: string, role: Role | undefined): string | undefined {
  if (!gate) return undefined;
  if (gate.requiredRole !== undefined && !meetsRole(role, gate.requiredRole)) {
    return `Only the role ${gate.requiredRole} may approve it.`;
  }
  if (gate.grantedBy.includes(principal)) return 'You have approved it. More approvals are needed.';
  return revisions.some(({ by }) => by === principal)
    ? 'You wrote a revision, so somebody else has to approve it.'
    : undefined;
}

function useRefresh(proposalId: string): () => void {
  const cache = useQueryClient();
  return () => {
    void cache.invalidateQueries({ queryKey: ['proposal', proposalId] });
    for (const name of ['proposals', 'installed', 'inbox']) void cache.invalidateQueries({ queryKey: [name] });
  };
}

/** What somebody may not do here is said once, with who may. */
function WhoMay({ proposal: { state }, evidence }: DecideProps) {
  const may = useMay();
  const { role, principal } = useSession();
  if (state !== 'draft' && state !== 'revised') return null;
  if (!may('proposals:activate')) return <p className="quiet">Reviewers and owners may apply it.</p>;
  const why = whyNot(evidence, principal, role);
  return why === undefined ? null : <p className="quiet">{why}</p>;
}

function Gate({ evidence: { gate } }: { readonly evidence: ProposalEvidence }) {
  if (!gate) return null;
  const { quorum, grantedBy } = gate;
  return (
    <p className={styles.gate}>
      It waits for approval:{' '}
      <span className="number">
        {grantedBy.length} of {quorum}
      </span>
      {grantedBy.length > 0 && (
        <>
          {' '}
          (<Principals ids={grantedBy} />)
        </>
      )}
      .
    </p>
  );
}

function Reject({ proposalId, onClose }: { readonly proposalId: string; readonly onClose: () => void }) {
  const refresh = useRefresh(proposalId);
  const [reason, setReason] = useState('');
  const reject = useMutation({
    mutationFn: () => client.rejectProposal(proposalId, reason.trim() === '' ? {} : { reason: reason.trim() }),
    onSuccess: () => {
      say('The proposal is rejected. The same evidence is not proposed again.');
      refresh();
      onClose();
    },
    onError: complain,
  });
  const footer = (
    <>
      <Button onClick={onClose}>Close</Button>
      <Button kind="danger" isBusy={reject.isPending} onClick={() => reject.mutate()}>
        Reject
      </Button>
    </>
  );
  return (
    <Dialog title="Reject for good?" isOpen onClose={onClose} footer={footer}>
      <Field label="Why (optional)" hint="Stored with the evidence.">
        {(field) => <input {...field} value={reason} onChange={({ target }) => setReason(target.value)} />}
      </Field>
    </Dialog>
  );
}

function Override({ evidence, onClose }: { readonly evidence: ProposalEvidence; readonly onClose: () => void }) {
  const { runId, gate, artifactHash, proposalId } = evidence;
  const refresh = useRefresh(proposalId);
  const [reason, setReason] = useState('');
  const override = useMutation({
    mutationFn: () =>
      client.resolveInterruptByRun(runId, gate!.nodeId, {
        resumeValue: { decision: 'overridden', reason: reason.trim(), artifactHash },
      }),
    onSuccess: () => {
      refresh();
      onClose();
    },
    onError: complain,
  });
  const footer = (
    <>
      <Button onClick={onClose}>Close</Button>
      <Button
        kind="danger"
        disabled={reason.trim() === ''}
        isBusy={override.isPending}
        onClick={() => override.mutate()}
      >
        Override
      </Button>
    </>
  );
  return (
    <Dialog title="Override the gate?" isOpen onClose={onClose} footer={footer}>
      <Field label="Why" hint="It is recorded in the audit log under your name.">
        {(field) => <input {...field} value={reason} onChange={({ target }) => setReason(target.value)} />}
      </Field>
    </Dialog>
  );
}
