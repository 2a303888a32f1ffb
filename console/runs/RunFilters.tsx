import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { X } from 'lucide-react';
import { RUN_STATUSES } from '../../src/protocol/running/run-status.ts';
import { useMay } from '../api/session.ts';
import { workflowsQuery } from '../api/workflows.ts';
import { Button } from '../parts/Button.tsx';
import { markOf } from '../parts/StateMark.tsx';
import { exactly } from '../parts/time.ts';
import { ORIGIN_CHOICES } from './origin.ts';
import styles from './RunFilters.module.css';
import { type RunsSearch, readRunsSearch } from './search.ts';

const DAY_MS = 86_400_000;
const SINCE = [
  ['1', 'Last day'],
  ['7', 'Last 7 days'],
  ['30', 'Last 30 days'],
] as const;

/** What narrows the list of runs; all of it is in the address. */
export function RunFilters({ search }: { readonly search: RunsSearch }) {
  const navigate = useNavigate();
  const may = useMay();
  const { data: workflows = [] } = useQuery({ ...workflowsQuery, enabled: may('manifest:read') });
  const set = (change: Record<string, unknown>): void => {
    void navigate({ to: '/runs', search: readRunsSearch({ ...search, ...change }), replace: true });
  };
  const { start: _start, ...filters } = search;
  return (
    <search className={styles.filters}>
      <input
        className={styles.text}
        type="search"
        placeholder="Filter by id, workflow or outcome"
        aria-label="Filter by id, workflow or outcome"
        value={search.text ?? ''}
        onChange={({ target }) => set({ text: target.value })}
      />
      <select aria-label="State" value={search.status ?? ''} onChange={({ target }) => set({ status: target.value })}>
        <option value="">Any state</option>
        {RUN_STATUSES.map((status) => (
          <option key={status} value={status}>
            {markOf(status)[1]} {status === 'waiting-external' ? 'Waiting for an event' : markOf(status)[2]}
          </option>
        ))}
      </select>
      <select
        aria-label="Workflow"
        value={search.workflowId ?? ''}
        onChange={({ target }) => set({ workflowId: target.value })}
      >
        <option value="">Any workflow</option>
        {workflows.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
      <select aria-label="Origin" value={search.origin ?? ''} onChange={({ target }) => set({ origin: target.value })}>
        {ORIGIN_CHOICES.map(([origin, label]) => (
          <option key={origin} value={origin}>
            {label}
          </option>
        ))}
      </select>
      <select
        aria-label="Started"
        value={sinceOf(search)}
        onChange={({ target }) => set({ since: since(target.value), until: undefined })}
      >
        <option value="">Any time</option>
        {search.until !== undefined && <option value="span">{spanOf(search)}</option>}
        {SINCE.map(([days, label]) => (
          <option key={days} value={days}>
            {label}
          </option>
        ))}
      </select>
      <input
        className={styles.tag}
        placeholder="Tag"
        aria-label="Tag"
        defaultValue={search.tag ?? ''}
        key={search.tag}
        onBlur={({ target }) => target.value !== (search.tag ?? '') && set({ tag: target.value })}
        onKeyDown={({ key, currentTarget }) => key === 'Enter' && set({ tag: currentTarget.value })}
      />
      <label className={styles.flagged}>
        <input
          type="checkbox"
          checked={search.flagged ?? false}
          onChange={({ target }) => set({ flagged: target.checked })}
        />
        Flagged
      </label>
      {Object.keys(filters).length > 0 && (
        <Button kind="quiet" icon={<X />} onClick={() => void navigate({ to: '/runs', search: {} })}>
          Clear
        </Button>
      )}
    </search>
  );
}

/** The beginning of the day that many days ago, so that the address stays the same all day. */
function since(days: string): string | undefined {
  if (days === '') return undefined;
  const day = new Date(Date.now() - Number(days) * DAY_MS);
  day.setUTCHours(0, 0, 0, 0);
  return day.toISOString();
}

/** A stretch of time that another page leads to. */
function spanOf({ since: from, until = '' }: RunsSearch): string {
  return `${from === undefined ? '…' : exactly(from)} – ${exactly(until)}`;
}

function sinceOf({ since: from, until }: RunsSearch): string {
  if (until !== undefined) return 'span';
  if (from === undefined) return '';
  const days = (Date.now() - Date.parse(from)) / DAY_MS;
  return SINCE.find(([limit]) => days <= Number(limit) + 1)?.[0] ?? '30';
}
