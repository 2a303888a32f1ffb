import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { Proposal, ProposalEvidence } from '../../src/protocol/learning/proposals.ts';
import { useFeed } from '../api/feed.ts';
import { evidenceQuery, proposalQuery } from '../api/proposals.ts';
import { isBlocked, readAgain } from '../api/queries.ts';
import { Diff } from '../parts/Diff.tsx';
import { JsonTree } from '../parts/JsonTree.tsx';
import { Mark } from '../parts/Mark.tsx';
import { Panel } from '../parts/Panel.tsx';
import { Principal } from '../parts/Principal.tsx';
import { Problem, Skeleton } from '../parts/States.tsx';
import { Time } from '../parts/Time.tsx';
import { Decide } from './Decide.tsx';
import { Effect } from './Effect.tsx';
import { KINDS, STATES } from './kinds.ts';
import { Previews } from './Previews.tsx';
import styles from './ProposalPage.module.css';
import { Revise } from './Revise.tsx';
import type { ProposalSearch } from './search.ts';
import { type Version, versionsOf } from './texts.ts';

const route = getRouteApi('/shell/proposals/$proposalId');

/** One proposal: why, what changes, what stands in its way, and the decision. */
export function ProposalPage() {
  const { proposalId } = route.useParams();
  const search = route.useSearch();
  const navigate = useNavigate();
  const proposal = useQuery(proposalQuery(proposalId));
  const evidence = useQuery(evidenceQuery(proposalId));
  useFeed((event) => {
    const isAbout = event.startsWith('proposal.') || event === 'inbox.changed';
    if (isAbout) void readAgain({ queryKey: ['proposal', proposalId] });
  });
  const versions = useMemo(() => (evidence.data ? versionsOf(evidence.data) : []), [evidence.data]);
  if (isBlocked(proposal)) return <Problem error={proposal.error} onRetry={() => void proposal.refetch()} />;
  if (isBlocked(evidence)) return <Problem error={evidence.error} onRetry={() => void evidence.refetch()} />;
  if (!proposal.data || !evidence.data) return <Skeleton lines={8} />;
  const set = (next: ProposalSearch): void =>
    void navigate({
      to: '/proposals/$proposalId',
      params: { proposalId },
      search: next,
      replace: true,
      resetScroll: false,
    });
  const { edit: _edit, ...rest } = search;
  return (
    <div className={styles.page}>
      <Head proposal={proposal.data} />
      <Decide
        proposal={proposal.data}
        evidence={evidence.data}
        isRevising={search.edit === true}
        onRevise={() => set({ ...search, edit: true })}
      />
      {search.edit && <Revise proposal={proposal.data} text={versions.at(-1)?.text ?? ''} onDone={() => set(rest)} />}
      <Why proposal={proposal.data} evidence={evidence.data} />
      <Changes versions={versions} search={search} onChange={set} />
      {evidence.data.preview !== undefined && (
        <Panel title="What would have changed">
          <JsonTree value={evidence.data.preview} />
        </Panel>
      )}
      {proposal.data.activation && <Effect proposalId={proposalId} />}
      <Previews proposal={proposal.data} />
      <History evidence={evidence.data} />
    </div>
  );
}

function Head({ proposal: { title, kind, state, createdAt, updatedAt, provenance } }: { readonly proposal: Proposal }) {
  return (
    <header className={styles.head}>
      <Mark mark={STATES[state]} isSoft />
      <h1 dir="auto">{title || `Proposed: ${KINDS[kind].words}`}</h1>
      <p className="quiet">
        {KINDS[kind].words} · drafted <Time at={createdAt} />
        {updatedAt && updatedAt !== createdAt && (
          <>
            {' '}
            · changed <Time at={updatedAt} />
          </>
        )}
        {provenance.synthesizerModel && ` · by ${provenance.synthesizerModel}`}
      </p>
    </header>
  );
}

interface EvidenceProps {
  readonly proposal: Proposal;
  readonly evidence: ProposalEvidence;
}

/** The reasons: in words, the runs that they come from, and what is already like it. */
function Why({ proposal: { rationale, duplicateOf }, evidence: { sources, nearest } }: EvidenceProps) {
  return (
    <div className={styles.why}>
      <Panel title="Why">
        <div className={styles.reasons}>
          {rationale ? (
            <p dir="auto" className={styles.text}>
              {rationale}
            </p>
          ) : (
            <p className="quiet">No rationale was given.</p>
          )}
          <h3>Evidence</h3>
          {sources.length === 0 && <p className="quiet">No run is named as its source.</p>}
          <ul className={styles.sources}>
            {sources.map(({ runId, why, excerpt }) => (
              <li key={runId}>
                <Link to="/runs/$runId" params={{ runId }} search={{}} className="mono">
                  {runId}
                </Link>{' '}
                <span dir="auto">{why}</span>
                {excerpt && <blockquote dir="auto">{excerpt}</blockquote>}
              </li>
            ))}
          </ul>
        </div>
      </Panel>
      <Panel title="Similar">
        {nearest.length === 0 && !duplicateOf && <p className="quiet">No similar artifact exists.</p>}
        {duplicateOf && (
          <p className={styles.warning}>
            It seems to repeat <code>{duplicateOf}</code>.
          </p>
        )}
        <ul className={styles.nearest}>
          {nearest.map(({ ref, score }) => (
            <li key={ref}>
              <code>{ref}</code>
              <meter min={0} max={1} value={score} aria-label={`Similarity of ${ref}`} />
              <span className="number">{Math.round(score * 100)} %</span>
            </li>
          ))}
        </ul>
      </Panel>
    </div>
  );
}

interface ChangesProps {
  readonly versions: readonly Version[];
  readonly search: ProposalSearch;
  readonly onChange: (search: ProposalSearch) => void;
}

/** What changes: from what is installed to what is proposed, or from one revision to another. */
function Changes({ versions, search, onChange }: ChangesProps) {
  const last = versions.length - 1;
  const [from, to] = [versions[search.from ?? 0] ?? versions[0]!, versions[search.to ?? last] ?? versions[last]!];
  const picker = (name: 'from' | 'to', label: string, chosen: Version) => (
    <select
      aria-label={label}
      value={chosen.number}
      onChange={({ target }) => onChange({ ...search, [name]: Number(target.value) })}
    >
      {versions.map((version) => (
        <option key={version.number} value={version.number}>
          {version.label}
        </option>
      ))}
    </select>
  );
  return (
    <Panel
      title="What changes"
      isFlush
      aside={
        <span className={styles.pickers}>
          {picker('from', 'Compare', from)}
          <span aria-hidden="true">→</span>
          {picker('to', 'With', to)}
        </span>
      }
    >
      <Diff before={from.text} after={to.text} labels={[from.label, to.label]} />
    </Panel>
  );
}

function History({
  evidence: { revisions, rejectReason, uninstalledAt, runId },
}: {
  readonly evidence: ProposalEvidence;
}) {
  return (
    <Panel
      title="History"
      aside={
        <Link to="/runs/$runId" params={{ runId }} search={{}}>
          Whole log
        </Link>
      }
    >
      <ol className={styles.history}>
        {revisions.map(({ at, by, hash, note }, index) => (
          <li key={`${at}${hash}`}>
            <strong>{index === 0 ? 'Drafted' : `Revision ${index}`}</strong> by <Principal id={by} /> <Time at={at} />{' '}
            <code title={hash}>{hash.slice(0, 12)}</code>
            {note && (
              <p dir="auto" className={styles.text}>
                {note}
              </p>
            )}
          </li>
        ))}
        {rejectReason !== undefined && (
          <li>
            <strong>Rejected</strong>
            <p dir="auto" className={styles.text}>
              {rejectReason}
            </p>
          </li>
        )}
        {uninstalledAt !== undefined && (
          <li>
            <strong>Uninstalled</strong> <Time at={uninstalledAt} />
          </li>
        )}
      </ol>
    </Panel>
  );
}
