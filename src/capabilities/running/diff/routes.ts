import { Type } from 'typebox';
import type { EventDiff } from '../../../engine/inspection/log-diff.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { RunDiff } from '../../../protocol/running/inspection.ts';
import { RunId, RunParams } from '../../../protocol/running/runs.ts';
import { route } from '../../request.ts';
import type { DiffService } from './service.ts';

const diffRun = route<{ readonly diff: DiffService }>()({
  operationId: 'diffRun',
  summary: 'Compare this run with another',
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

/** Stored events are JSON text already, so they are inserted as they are. */
function textOf({ seq, op, a, b }: EventDiff): string {
  const events = `${a ? `,"aEvent":${a.body}` : ''}${b ? `,"bEvent":${b.body}` : ''}`;
  return `{"seq":${seq},"op":"${op}"${events}}`;
}

/** The routes of diff. */
export const routes = [diffRun];
