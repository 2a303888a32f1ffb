import { CloudOff } from 'lucide-react';
import { useLostSince } from '../api/connection.ts';
import styles from './Stale.module.css';
import { Time, useNow } from './Time.tsx';
import { clockTime } from './time.ts';

/** A host that restarts is back before anybody has read a notice. */
const PATIENCE_MS = 1_000;

/** Says that the host does not answer, and since when. The page stays as it was and goes on by itself. */
export function Stale() {
  const since = useLostSince();
  return <div role="status">{since !== undefined && <Notice key={since} since={since} />}</div>;
}

function Notice({ since }: { readonly since: number }) {
  const now = useNow(PATIENCE_MS);
  if (now - since < PATIENCE_MS) return null;
  const at = new Date(since).toISOString();
  return (
    <p className={styles.stale}>
      <CloudOff aria-hidden="true" />
      <span>
        The host has not answered since {clockTime(at).slice(0, -4)} (<Time at={at} />
        ). This page shows what was known then, and goes on when the host is back.
      </span>
    </p>
  );
}
