import type { Runtime } from '../../../runtime/runtime.ts';
import type { InboxSource } from '../inbox/door.ts';
import { listReviews, type ReviewRow } from './records.ts';

/** Runs that a person flagged, rated low or corrected, until somebody labels them as reviewed. */
export function reviewInboxSource({ store }: Pick<Runtime, 'store'>): InboxSource {
  const list: InboxSource['list'] = async ({ subject }, before, limit) => {
    const rows = await store.read<ReviewRow>(listReviews(subject, before, limit));
    return rows.map((row) => ({
      kind: 'feedback',
      id: row.annotation_id,
      title: `${row.reason}: ${row.workflow_id}`,
      createdAt: row.created_at,
      workspace: row.workspace,
      link: `/console/runs/${row.run_id}`,
      runId: row.run_id,
      ...(row.node_id === null ? {} : { nodeId: row.node_id }),
      requiredScope: 'feedback:write',
    }));
  };
  return { kinds: ['feedback'], scope: 'feedback:read', list };
}
