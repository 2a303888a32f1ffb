import { useEffect, useState } from 'react';
import { ago, exactly, span } from './time.ts';

const EVERY_MS = 10_000;

/** When something was: how long ago, and exactly on hover. */
export function Time({ at }: { readonly at: string }) {
  const now = useNow(EVERY_MS);
  return (
    <time dateTime={at} title={exactly(at)} className="number">
      {ago(at, now)}
    </time>
  );
}

/** How long it took, or has taken so far. */
export function Duration({ from, to }: { readonly from: string; readonly to?: string | undefined }) {
  const now = useNow(to === undefined ? 1_000 : 0);
  return <span className="number quiet">{span((to === undefined ? now : Date.parse(to)) - Date.parse(from))}</span>;
}

/** The present, anew each time it has passed by so much; it stands still with 0. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (everyMs === 0) return;
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
