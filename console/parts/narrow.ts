import { useSyncExternalStore } from 'react';

/** Whether the window is narrower than that many pixels, as it is on a telephone. */
export function useNarrow(belowPx: number): boolean {
  const query = `(max-width: ${belowPx}px)`;
  return useSyncExternalStore(
    (listener) => {
      const media = matchMedia(query);
      media.addEventListener('change', listener);
      return () => media.removeEventListener('change', listener);
    },
    () => matchMedia(query).matches,
  );
}
