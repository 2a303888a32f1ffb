import { listQuarantined, type QuarantinedRow } from '../../../store/queue.ts';
import type { Host } from '../../capability.ts';
import type { InboxSource } from '../../people/inbox/door.ts';

/** Quarantined runs: a person resumes or cancels them. */
export function quarantineInboxSource({ runtime }: Pick<Host, 'runtime'>): InboxSource {
  const list: InboxSource['list'] = async ({ subject }, before, limit) => {
    const rows = await runtime.store.read<QuarantinedRow>(listQuarantined(subject, before, limit));
    return rows.map(({ work_id: runId, quarantined_at, workspace }) => ({
      kind: 'quarantine',
      id: runId,
      title: 'A run is quarantined because it crashed or blocked its host (runner_unavailable)',
      createdAt: quarantined_at,
      workspace,
      link: `/console/runs/${runId}`,
      runId,
      requiredScope: 'runs:cancel',
    }));
  };
  return { kinds: ['quarantine'], list };
}
