import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { Sparkles } from 'lucide-react';
import { useState } from 'react';
import type { InstalledArtifactSummary, Proposal } from '../../src/protocol/learning/proposals.ts';
import { client } from '../api/client.ts';
import { useFeed } from '../api/feed.ts';
import { installedQuery, proposalsQuery } from '../api/proposals.ts';
import { isBlocked, readAgain } from '../api/queries.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { useKeys } from '../parts/keys.ts';
import { Mark } from '../parts/Mark.tsx';
import { counted } from '../parts/numbers.ts';
import { Principal } from '../parts/Principal.tsx';
import { Empty, Problem, Skeleton } from '../parts/States.tsx';
import { Time } from '../parts/Time.tsx';
import { complain, say } from '../parts/toasts.tsx';
import { ARTIFACT_KINDS, KINDS, PROPOSAL_STATES, STATES } from './kinds.ts';
import styles from './ProposalsPage.module.css';
import type { ProposalsSearch } from './search.ts';
import { Uninstall } from './Uninstall.tsx';

const route = getRouteApi('/shell/proposals');

/** What the host has learnt from past runs, and what of it is installed. */
export function ProposalsPage() {
  const search = route.useSearch();
  const isInstalled = search.view === 'installed';
  return (
    <div className={styles.page}>
      <header className={styles.head}>
        <h1>Proposals</h1>
        <Synthesize />
      </header>
      <nav className={styles.tabs} aria-label="Proposed or installed">
        <Link
          to="/proposals"
          search={{}}
          activeOptions={{ exact: true, includeSearch: true }}
          aria-current={isInstalled ? undefined : 'page'}
        >
          Proposed
        </Link>
        <Link
          to="/proposals"
          search={{ view: 'installed' }}
          activeOptions={{ exact: true, includeSearch: true }}
          aria-current={isInstalled ? 'page' : undefined}
        >
          Installed
        </Link>
      </nav>
      {isInstalled ? <Installed /> : <Proposed search={search} />}
    </div>
  );
}

/** Looks for habits in the runs now, instead of at the next time. */
function Synthesize() {
  const may = useMay();
  const cache = useQueryClient();
  const look = useMutation({
    mutationFn: () => client.synthesizeProposals({}),
    onSuccess: ({ created, scannedRuns }) => {
      const found = created.length === 0 ? 'no proposals' : counted(created.length, 'proposal');
      say(`Found ${found} in ${counted(scannedRuns, 'run')} since the last scan.`);
      void cache.invalidateQueries({ queryKey: ['proposals'] });
    },
    onError: complain,
  });
  if (!may('proposals:write')) return null;
  return (
    <Button icon={<Sparkles />} isBusy={look.isPending} onClick={() => look.mutate()}>
      Look for proposals now
    </Button>
  );
}

function Proposed({ search }: { readonly search: ProposalsSearch }) {
  const { view: _view, ...filters } = search;
  const query = useInfiniteQuery(proposalsQuery(filters));
  useFeed((event) => {
    if (event.startsWith('proposal.')) void readAgain({ queryKey: ['proposals'] });
  });
  const rows = query.data?.pages.flatMap(({ proposals }) => proposals) ?? [];
  return (
    <>
      <Filters search={search} />
      {isBlocked(query) ? (
        <Problem error={query.error} onRetry={() => void query.refetch()} />
      ) : query.isPending ? (
        <Skeleton lines={6} />
      ) : rows.length === 0 ? (
        <NoProposals isFiltered={Object.keys(filters).length > 0} />
      ) : (
        <ProposalTable rows={rows} />
      )}
      {query.hasNextPage && (
        <Button isBusy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          Show older ones
        </Button>
      )}
    </>
  );
}

function NoProposals({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No proposal matches" action={<Link to="/proposals">Show all proposals</Link>} />;
  return (
    <Empty title="No proposals yet">
      The host drafts proposals from runs that were corrected, repeated or worked well. Nothing of them has an effect
      until somebody applies it.
    </Empty>
  );
}

function Filters({ search }: { readonly search: ProposalsSearch }) {
  const navigate = useNavigate();
  const set = (name: 'state' | 'kind', value: string): void =>
    void navigate({ to: '/proposals', search: { ...search, [name]: value === '' ? undefined : value }, replace: true });
  return (
    <div className={styles.filters}>
      <select aria-label="State" value={search.state ?? ''} onChange={({ target }) => set('state', target.value)}>
        <option value="">Every state</option>
        {PROPOSAL_STATES.map((state) => (
          <option key={state} value={state}>
            {STATES[state][2]}
          </option>
        ))}
      </select>
      <select aria-label="Kind" value={search.kind ?? ''} onChange={({ target }) => set('kind', target.value)}>
        <option value="">Every kind</option>
        {ARTIFACT_KINDS.map((kind) => (
          <option key={kind} value={kind}>
            {KINDS[kind].words}
          </option>
        ))}
      </select>
    </div>
  );
}

function ProposalTable({ rows }: { readonly rows: readonly Proposal[] }) {
  const [focus, setFocus] = useState(-1);
  const navigate = useNavigate();
  const at = rows[focus];
  const move = (by: number) => (): void => setFocus(Math.min(rows.length - 1, Math.max(0, focus + by)));
  useKeys('Proposals', [
    { keys: 'j', label: 'Next proposal', act: move(1) },
    { keys: 'k', label: 'Previous proposal', act: move(-1) },
    {
      keys: 'Enter',
      label: 'Open the proposal',
      act: () => at && void navigate({ to: '/proposals/$proposalId', params: { proposalId: at.id }, search: {} }),
    },
  ]);
  return (
    <div className={styles.scroll}>
      <table className={styles.table}>
        <thead>
          <tr>
            <th>State</th>
            <th>Title</th>
            <th>Kind</th>
            <th>Runs</th>
            <th>Changed</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ id, state, title, kind, provenance, createdAt, updatedAt }) => (
            <tr key={id} data-focused={id === at?.id || undefined}>
              <td>
                <Mark mark={STATES[state]} />
              </td>
              <td className={styles.title}>
                <Link to="/proposals/$proposalId" params={{ proposalId: id }} search={{}} dir="auto">
                  {title || `Proposed: ${KINDS[kind].words}`}
                </Link>
              </td>
              <td>{KINDS[kind].words}</td>
              <td className="number">{provenance.sourceRunIds.length}</td>
              <td>
                <Time at={updatedAt ?? createdAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Installed() {
  const query = useQuery(installedQuery);
  const [chosen, choose] = useState<InstalledArtifactSummary>();
  const may = useMay();
  useFeed((event) => {
    if (event.startsWith('proposal.')) void readAgain({ queryKey: installedQuery.queryKey });
  });
  if (isBlocked(query)) return <Problem error={query.error} onRetry={() => void query.refetch()} />;
  if (!query.data) return <Skeleton lines={6} />;
  if (query.data.length === 0)
    return <Empty title="Nothing is installed">What applied proposals install is listed here.</Empty>;
  return (
    <div className={styles.scroll}>
      <table className={styles.table}>
        <thead>
          <tr>
            <th>Artifact</th>
            <th>Kind</th>
            <th>Replaced</th>
            <th>SHA-256</th>
            <th>Installed</th>
            {may('proposals:activate') && <th aria-label="Actions" />}
          </tr>
        </thead>
        <tbody>
          {query.data.map((artifact) => (
            <tr key={artifact.ref}>
              <td className={styles.title}>
                <Link
                  to="/proposals/$proposalId"
                  params={{ proposalId: artifact.proposalId }}
                  search={{}}
                  className="mono"
                >
                  {artifact.ref}
                </Link>
              </td>
              <td>{KINDS[artifact.kind].words}</td>
              <td className={styles.title}>{artifact.replaces ?? <span className="quiet">nothing</span>}</td>
              <td className="mono" title={artifact.sha256}>
                {artifact.sha256.slice(0, 12)}
              </td>
              <td>
                <Time at={artifact.installedAt} />{' '}
                <span className="quiet">
                  by <Principal id={artifact.installedBy} />
                </span>
              </td>
              {may('proposals:activate') && (
                <td>
                  <Button kind="danger" onClick={() => choose(artifact)}>
                    Uninstall
                  </Button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {chosen && <Uninstall artifact={chosen} onClose={() => choose(undefined)} />}
    </div>
  );
}
