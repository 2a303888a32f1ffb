import type { Visibility } from '../../../store/log.ts';
import type { Host } from '../../capability.ts';
import type { InboxEntry, InboxSource } from '../inbox/door.ts';
import { InterruptLinks } from './door.ts';
import { type InterruptRow, listOpen } from './records.ts';

/** Open interrupts and gates; those of a proposal link to the proposal instead of its management run. */
export function interruptInboxSource(host: Pick<Host, 'runtime' | 'extensions'>): InboxSource {
  const list: InboxSource['list'] = async ({ subject }, before, limit) => {
    const { tenant, workspace } = subject;
    const rows = await host.runtime.store.read<InterruptRow>(listOpen(tenant, workspace, before, limit));
    const bound = rows.filter(({ artifact_hash }) => artifact_hash !== null).map(({ run_id }) => run_id);
    const links = await linksOf(host, subject, bound);
    return rows.map((row) => entryOf(row, links.get(row.run_id) ?? { link: `/console/runs/${row.run_id}` }));
  };
  return { kinds: ['interrupt', 'gate'], list };
}

type Link = Pick<InboxEntry, 'link' | 'proposalId'>;

async function linksOf(
  host: Pick<Host, 'extensions'>,
  from: Visibility,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, Link>> {
  if (runIds.length === 0) return new Map();
  const found = await Promise.all(host.extensions(InterruptLinks).map((linksTo) => linksTo(from, runIds)));
  return new Map(found.flatMap((links) => [...links]));
}

function entryOf(row: InterruptRow, link: Link): InboxEntry {
  return {
    kind: row.is_gate === 1 ? 'gate' : 'interrupt',
    id: row.interrupt_id,
    title: row.title,
    ...(row.about === null ? {} : { about: row.about }),
    createdAt: row.requested_at,
    workspace: row.workspace,
    ...link,
    runId: row.run_id,
    nodeId: row.node_id,
    ...(row.artifact_hash === null ? {} : { artifactHash: row.artifact_hash }),
    ...(row.required_scope === null ? {} : { requiredScope: row.required_scope }),
  };
}
