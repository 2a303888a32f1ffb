import { isTerminal } from '../../../engine/run/run.ts';
import type { AppendListener, Hub } from '../../../runtime/hub.ts';
import type { Append, Reaction } from '../../../runtime/reaction.ts';
import { wake } from '../../../store/queue.ts';

/** When a preview run ends, its preview goes on, in the same unit. Other runs cost a look at a fact in memory. */
export const wakePreview: Reaction = (append) => {
  const preview = endedFor(append);
  return preview === undefined ? [] : [wake(preview)];
};

/** Has this host look for the preview that was woken. */
export function announcePreview(hub: Hub): AppendListener {
  return (append) => {
    const preview = endedFor(append);
    if (preview !== undefined) hub.wakeWorkers(preview);
  };
}

function endedFor({ run }: Append): string | undefined {
  return run.facts.fork?.preview !== undefined && isTerminal(run) ? run.facts.fork.preview : undefined;
}
