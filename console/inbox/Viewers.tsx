import { useQuery } from '@tanstack/react-query';
import { Eye } from 'lucide-react';
import type { InboxItem } from '../../src/protocol/people/inbox.ts';
import { useViewerNews, viewersQuery } from '../api/looking.ts';
import { useMay, useSession } from '../api/session.ts';
import { Principal } from '../parts/Principal.tsx';
import styles from './Viewers.module.css';

const NAMED_MAX = 3;

/** Finds who else has an item open. */
export type OthersAt = (item: InboxItem) => readonly string[];

/** Who else has which item open, as it changes. */
export function useOthers(): OthersAt {
  const may = useMay();
  const { principal: me } = useSession();
  const { data } = useQuery({ ...viewersQuery, enabled: may('runs:read') });
  useViewerNews();
  return ({ kind, id, runId }) =>
    (data?.items ?? [])
      .filter((viewer) => viewer.kind === kind && viewer.id === id && viewer.runId === runId)
      .map(({ principal }) => principal)
      .filter((principal) => principal !== me);
}

/** Names in a row of the queue. */
export function RowViewers({ names }: { readonly names: readonly string[] }) {
  if (names.length === 0) return null;
  return (
    <span className={styles.row}>
      <Eye aria-hidden="true" />
      <i className="hidden">Open at: </i>
      <Names names={names} />
    </span>
  );
}

/** Who else is looking, above the item itself. */
export function ItemViewers({ names }: { readonly names: readonly string[] }) {
  if (names.length === 0) return null;
  return (
    <p className={styles.item}>
      <Eye aria-hidden="true" />
      <span>
        <Names names={names} /> {names.length === 1 ? 'is' : 'are'} looking at this
      </span>
    </p>
  );
}

/** A name stands by itself, whichever way it is written. */
function Names({ names }: { readonly names: readonly string[] }) {
  const shown = names.slice(0, NAMED_MAX);
  const rest = names.length - shown.length;
  return (
    <span>
      {shown.map((name, index) => (
        <span key={name}>
          {index > 0 && (index === shown.length - 1 && rest === 0 ? ' and ' : ', ')}
          <Principal id={name} />
        </span>
      ))}
      {rest > 0 && ` and ${rest} more`}
    </span>
  );
}
