import { Type } from 'typebox';
import type { EventDiff } from '../../../engine/inspection/log-diff.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { RunDiff } from '../../../protocol/running/inspection.ts';
import { RunId, RunParams } from '../../../protocol/running/runs.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { route } from '../../request.ts';
import { type DiffService, diffService } from './service.ts';

const diffRun = route<{ readonly diff: DiffService }>()({
  operationId: 'diffRun',
  summary: 'How another run differs from this one',
  method: 'GET',
  path: '/v1/runs/{runId}:diff',
  scope: 'runs:read',
  params: RunParams,
  query: Type.Object({ against: RunId }),
  replies: { 200: RunDiff },
  refusals: [400, 404, 410],
  handle: async ({ caller, params: { runId }, query: { against } }, { diff }) => {
    const outcome = await diff.compare(caller, runId, against);
    if (isRefusal(outcome)) return outcome;
    const { log, stateDiff, isTruncated } = outcome;
    const head = JSON.stringify({
      a: runId,
      b: against,
      divergedAtSeq: log.divergedAtSeq,
      stateDiff,
      truncated: isTruncated,
    });
    return { status: 200, text: `${head.slice(0, -1)},"eventDiffs":[${log.diffs.map(textOf).join(',')}]}` };
  },
});

/** Events are JSON already; only what stands around them has to be written. */
function textOf({ seq, op, a, b }: EventDiff): string {
  const events = `${a ? `,"aEvent":${a.body}` : ''}${b ? `,"bEvent":${b.body}` : ''}`;
  return `{"seq":${seq},"op":"${op}"${events}}`;
}

/** Comparing runs. The protocol has no flag for it: who asks finds out. */
export const diff: Capability<'diff', DiffService> = {
  name: 'diff',
  service: diffService,
  routes: [diffRun],
};
