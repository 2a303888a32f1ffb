import { Type } from 'typebox';
import { apply } from '../../../engine/run/fold.ts';
import { snapshotOf } from '../../../engine/run/snapshot.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { RunParams, RunSnapshot } from '../../../protocol/running/runs.ts';
import { decodeEvent } from '../../../runtime/recording.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { LegacyCapability as Capability, LegacyHost as Host } from '../../legacy.ts';
import { logPages } from '../../log-pages.ts';
import { type Caller, reply, route } from '../../request.ts';

export type TimeTravelService = ReturnType<typeof timeTravelService>;

function timeTravelService({ runtime }: Host) {
  return {
    /** The run as it was once an event had happened: the same fold, ended there. */
    async stateAfter(caller: Caller, runId: string, sequence: number): Promise<RunSnapshot | Refusal> {
      const row = await runtime.reader.row(caller.subject, runId);
      if (!row) return NOT_FOUND;
      if (sequence > row.sequence) return beyondTheEnd(row.sequence);
      const { run } = await runtime.reader.fresh(row, -1);
      for await (const page of logPages(runtime, { ...row, sequence })) {
        for (const event of page) apply(run, decodeEvent(event));
      }
      return snapshotOf(run, sha256Hex);
    },
  };
}

function beyondTheEnd(lastSequence: number): Refusal {
  const message = 'The run has not come that far.';
  return { ...refuse('validation_error', message, { field: 'sequence', lastSequence }), status: 422 };
}

const getRunState = route<{ readonly timeTravel: TimeTravelService }>()({
  operationId: 'getRunState',
  summary: 'The run as it was after an event',
  method: 'GET',
  path: '/v1/host/capstan/runs/{runId}/state',
  scope: 'runs:read',
  params: RunParams,
  query: Type.Object({
    sequence: Type.String({ pattern: '^[0-9]{1,15}$', description: 'Sequence of the last event that counts' }),
  }),
  replies: { 200: RunSnapshot },
  refusals: [400, 404, 410, 422],
  handle: async ({ caller, params, query }, { timeTravel }) => {
    const outcome = await timeTravel.stateAfter(caller, params.runId, Number(query.sequence));
    return isRefusal(outcome) ? outcome : reply(200, outcome);
  },
});

/** Looking at a run as it was. */
export const timeTravel: Capability<'timeTravel', TimeTravelService> = {
  name: 'timeTravel',
  service: timeTravelService,
  routes: [getRunState],
};
