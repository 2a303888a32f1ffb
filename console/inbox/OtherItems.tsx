import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { Ban, Check, Play, RotateCw, X } from 'lucide-react';
import { type ReactNode, useRef, useState } from 'react';
import type { InboxItem } from '../../src/protocol/people/inbox.ts';
import type { Scope } from '../../src/protocol/trust/scopes.ts';
import { client } from '../api/client.ts';
import { evaluationsQuery, goalQuery, planQuery } from '../api/goals.ts';
import { applyProposal, evidenceQuery, proposalQuery } from '../api/proposals.ts';
import { isBlocked } from '../api/queries.ts';
import { useRunLog } from '../api/run-log.ts';
import { runQuery } from '../api/runs.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { Field } from '../parts/Field.tsx';
import { useKeys } from '../parts/keys.ts';
import { Problem, Skeleton } from '../parts/States.tsx';
import { complain, say } from '../parts/toasts.tsx';
import { Feedback } from '../runs/Feedback.tsx';
import styles from './Item.module.css';
import { ItemHead, RunEvidence } from './ItemParts.tsx';
import { type Answer, leaveOrSend } from './OpenQuestion.tsx';

interface ItemProps {
  readonly item: InboxItem;
  readonly onAnswer: Answer;
}

interface Deed {
  readonly keys: string;
  readonly label: string;
  readonly kind?: 'main' | 'plain' | 'danger';
  readonly icon?: ReactNode;
  readonly needs: Scope;
  readonly act: () => void;
}

/** What can be done, each with its key; what somebody may not do is said instead. */
function Deeds({ deeds }: { readonly deeds: readonly Deed[] }) {
  const may = useMay();
  const own = deeds.filter(({ needs }) => may(needs));
  useKeys('This item', own);
  if (own.length === 0) {
    const scopes = [...new Set(deeds.map(({ needs }) => needs))];
    return (
      <p className={styles.hindrance}>This needs the scope {scopes.join(' or ')}, which your key does not have.</p>
    );
  }
  return (
    <div className={styles.actions}>
      {own.map(({ keys, label, kind, icon, act }) => (
        <Button key={keys} kind={kind ?? 'plain'} icon={icon} aria-keyshortcuts={keys} onClick={act}>
          {label}
          <kbd className={styles.kbd}>{keys}</kbd>
        </Button>
      ))}
    </div>
  );
}

const review = (runId: string) => () =>
  client.createAnnotation(runId, { signal: { kind: 'label', label: 'reviewed' } });

/** Rates the run with a number, which is not the end of the review. */
function useRatingKeys(runId: string): void {
  const may = useMay();
  const cache = useQueryClient();
  const rate = async (rating: number): Promise<void> => {
    try {
      await client.createAnnotation(runId, { signal: { kind: 'rating', rating } });
      say(`Rated ${rating} of 5.`);
    } catch (error) {
      complain(error);
    }
    await cache.invalidateQueries({ queryKey: ['annotations', runId] });
  };
  const keys = [1, 2, 3, 4, 5].map((rating) => ({
    keys: String(rating),
    label: `Rate ${rating} of 5`,
    act: () => void rate(rating),
  }));
  useKeys('Rating', may('feedback:write') ? keys : []);
}

/** What people said about the run, and that it has been looked at. */
function Review({ runId, onAnswer }: { readonly runId: string; readonly onAnswer: Answer }) {
  return (
    <>
      <Deeds
        deeds={[
          {
            keys: 'a',
            label: 'Mark as reviewed',
            kind: 'main',
            icon: <Check />,
            needs: 'feedback:write',
            act: () => onAnswer('Marking as reviewed …', review(runId)),
          },
        ]}
      />
      <Feedback runId={runId} />
    </>
  );
}

/** A run that somebody flagged, corrected or rated low. */
export function FeedbackItem({ item, onAnswer }: ItemProps) {
  const { runId = '' } = item;
  useRatingKeys(runId);
  return (
    <RunItem item={item} kind="Feedback">
      <Review runId={runId} onAnswer={onAnswer} />
    </RunItem>
  );
}

/** A quarantined run: it crashed or blocked its host. */
export function QuarantineItem({ item, onAnswer }: ItemProps) {
  const { runId = '' } = item;
  return (
    <RunItem item={item} kind="Quarantined">
      <p>Resume the run to try again on the next free host, or cancel it.</p>
      <Deeds
        deeds={[
          {
            keys: 'a',
            label: 'Resume',
            kind: 'main',
            icon: <Play />,
            needs: 'runs:cancel',
            act: () => onAnswer('Resuming …', () => client.resumeRun(runId)),
          },
          {
            keys: 'r',
            label: 'Cancel the run',
            kind: 'danger',
            icon: <Ban />,
            needs: 'runs:cancel',
            act: () => onAnswer('Cancelling …', () => client.cancelRun(runId)),
          },
        ]}
      />
    </RunItem>
  );
}

function RunItem({ item, kind, children }: { item: InboxItem; kind: string; children: ReactNode }) {
  const { runId = '', title, createdAt } = item;
  const log = useRunLog(runId);
  const { data: run } = useQuery(runQuery(runId));
  return (
    <>
      <ItemHead kind={kind} title={title} at={createdAt} origin={item} />
      <div className={styles.columns}>
        <div className={styles.question}>{children}</div>
        <RunEvidence
          runId={runId}
          events={log.events}
          run={run}
          {...(item.nodeId === undefined ? {} : { nodeId: item.nodeId })}
        />
      </div>
    </>
  );
}

/** A draft that waits for somebody to apply or reject it. */
export function ProposalItem({ item, onAnswer }: ItemProps) {
  const { proposalId = '', title, createdAt } = item;
  const proposal = useQuery(proposalQuery(proposalId));
  const evidence = useQuery(evidenceQuery(proposalId));
  const navigate = useNavigate();
  const open = () => void navigate({ to: '/proposals/$proposalId', params: { proposalId }, search: {} });
  useKeys('Proposal', [{ keys: 'Enter', label: 'Review the proposal', act: open }]);
  if (isBlocked(evidence)) return <Problem error={evidence.error} />;
  if (!proposal.data || !evidence.data) return <Skeleton lines={5} />;
  const { artifactHash, obstacle, sources, gate } = evidence.data;
  const applying: Deed = {
    keys: 'a',
    label: 'Apply',
    kind: 'main',
    icon: <Check />,
    needs: 'proposals:activate',
    act: () => onAnswer('Applying …', () => applyProposal(proposalId, artifactHash)),
  };
  const rejecting: Deed = {
    keys: 'r',
    label: 'Reject',
    kind: 'danger',
    icon: <X />,
    needs: 'proposals:write',
    act: () => onAnswer('Rejecting …', () => client.rejectProposal(proposalId)),
  };
  return (
    <>
      <ItemHead kind="Proposal" title={title} at={createdAt} />
      <div className={styles.question}>
        {proposal.data.rationale && (
          <p dir="auto" className={styles.text}>
            {proposal.data.rationale}
          </p>
        )}
        <p className="quiet">
          {proposal.data.kind} · from {sources.length} {sources.length === 1 ? 'run' : 'runs'}
        </p>
        <p className={styles.hash}>
          <span className="quiet">SHA-256</span> <code>{artifactHash}</code>
        </p>
        {obstacle && <p className={styles.hindrance}>It cannot be applied now: {obstacle.message}</p>}
        <p>
          <Link to="/proposals/$proposalId" params={{ proposalId }} search={{}}>
            Review what changes
          </Link>
        </p>
        {gate && <p className="quiet">Its gate is open: vote there.</p>}
        <Deeds deeds={obstacle || gate ? [rejecting] : [applying, rejecting]} />
      </div>
    </>
  );
}

/** A goal that waits for a person: it stopped, is paused, has no plan, or is started by hand. */
export function GoalItem({ item, onAnswer }: ItemProps) {
  const { goalId = '', title, createdAt } = item;
  const goal = useQuery(goalQuery(goalId));
  const evaluations = useQuery(evaluationsQuery(goalId));
  const { data: plan } = useQuery(planQuery(goalId));
  const [note, setNote] = useState('');
  const field = useRef<HTMLInputElement>(null);
  const { escalation, paused } = evaluations.data ?? {};
  const may = useMay();
  const canResume = may('goals:write') && (goal.data?.state === 'escalated' || paused === true);
  const canStart = plan && goal.data?.state === 'active' && paused === false;
  const resume = (): void =>
    onAnswer('Resuming …', () => client.resumeGoal(goalId, note.trim() === '' ? {} : { note: note.trim() }));
  const resuming: Deed = {
    keys: 'a',
    label: 'Resume',
    kind: 'main',
    icon: <Play />,
    needs: 'goals:write',
    act: resume,
  };
  const starting: Deed = {
    keys: 'a',
    label: 'Start a run',
    kind: 'main',
    icon: <RotateCw />,
    needs: 'goals:write',
    act: () => onAnswer('Starting a run …', () => client.startGoalRun(goalId, {})),
  };
  const abandoning: Deed = {
    keys: 'r',
    label: 'Abandon',
    kind: 'danger',
    icon: <Ban />,
    needs: 'goals:write',
    act: () => onAnswer('Abandoning …', () => client.abandonGoal(goalId)),
  };
  const writing = { keys: 'Enter', label: 'Write a note', act: () => field.current?.focus() };
  useKeys('Goal', canResume ? [writing] : []);
  return (
    <>
      <ItemHead kind="Goal" title={title} at={createdAt} />
      <div className={styles.question}>
        <p dir="auto" className={styles.text}>
          {goal.data?.objective}
        </p>
        {escalation?.detail && (
          <p dir="auto" className={styles.subject}>
            {escalation.detail}
          </p>
        )}
        <p>
          <Link to="/goals/$goalId" params={{ goalId }} search={{}}>
            Open the goal
          </Link>
        </p>
        {plan === null && <NoPlan goalId={goalId} />}
        {canResume && (
          <Field label="A note for the next runs (optional)">
            {(attributes) => (
              <input
                {...attributes}
                ref={field}
                value={note}
                maxLength={2_000}
                onChange={({ target }) => setNote(target.value)}
                onKeyDown={(event) => leaveOrSend(event, resume)}
              />
            )}
          </Field>
        )}
        <Deeds deeds={[...(canResume ? [resuming] : []), ...(canStart ? [starting] : []), abandoning]} />
      </div>
    </>
  );
}

/** Without a plan no run can start, whoever wants to start one. */
function NoPlan({ goalId }: { readonly goalId: string }) {
  const may = useMay();
  return (
    <p>
      The goal has no plan, so no runs start.{' '}
      {may('goals:write') && (
        <Link to="/goals/$goalId" params={{ goalId }} search={{ edit: 'plan' }}>
          Make a plan
        </Link>
      )}
    </p>
  );
}

/** A verdict that somebody does not agree with. */
export function DisputeItem({ item, onAnswer }: ItemProps) {
  const { goalId = '', runId = '' } = item;
  const { data } = useQuery(evaluationsQuery(goalId));
  const verdict = data?.items.find((each) => each.runId === runId);
  return (
    <RunItem item={item} kind="Disputed verdict">
      {verdict && (
        <p>
          The judge <code>{verdict.judge}</code> found the goal {verdict.satisfied ? 'satisfied' : 'not satisfied'} by
          this run.
        </p>
      )}
      <p>
        <Link to="/goals/$goalId" params={{ goalId }} search={{}}>
          Open the goal
        </Link>
      </p>
      <Review runId={runId} onAnswer={onAnswer} />
    </RunItem>
  );
}
