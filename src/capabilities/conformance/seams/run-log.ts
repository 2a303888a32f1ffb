import { Type } from 'typebox';
import { isTerminal, statusOf } from '../../../engine/run/run.ts';
import { refuse } from '../../../protocol/errors.ts';
import { isObject } from '../../../protocol/format/json.ts';
import { AnyObject, Closed, NonEmpty } from '../../../protocol/format/schema.ts';
import type { RunEvent } from '../../../protocol/running/events.ts';
import { RunParams } from '../../../protocol/running/runs.ts';
import { moveRun } from '../../../runtime/move-run.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { reply, route, transact } from '../../request.ts';
import { eventsOf, payloadOf } from './trial-run.ts';

const operation = route<{ readonly runtime: Runtime }>();
const Text = Type.Optional(NonEmpty);

/** The log of a run that the caller may see; of any other it is empty, as suites ask with an id that nobody has. */
const readEvents = operation({
  operationId: 'seamRunEvents',
  summary: 'Test seam: the events of a run, by type, node and cause',
  method: 'GET',
  path: '/v1/host/sample/test/runs/{runId}/events',
  scope: 'runs:read',
  params: Closed({ runId: Type.String({ pattern: '^[A-Za-z0-9_-]{1,128}$' }) }),
  query: Closed({ type: Text, nodeId: Text, causationId: Text, correlationId: Text }),
  replies: { 200: Closed({ events: Type.Array(AnyObject) }) },
  refusals: [400],
  handle: async ({ caller, params, query }, { runtime }) => {
    const row = await runtime.reader.row(caller.subject, params.runId);
    const events = row ? await eventsOf(runtime, row) : [];
    return reply(200, { events: events.filter((event) => isAskedFor(event, query)).map(asSuitesRead) });
  },
});

interface Filter {
  readonly type?: string;
  readonly nodeId?: string;
  readonly causationId?: string;
  readonly correlationId?: string;
}

function isAskedFor(event: RunEvent, { type, nodeId, causationId, correlationId }: Filter): boolean {
  const { correlationId: correlated } = payloadOf(event);
  return (
    (type === undefined || event.type === type) &&
    (nodeId === undefined || event.nodeId === nodeId) &&
    (causationId === undefined || event.causationId === causationId) &&
    (correlationId === undefined || correlated === correlationId)
  );
}

/** The scenario about budgets compares the error of the run with a word, where the log has an object. */
function asSuitesRead(event: RunEvent): object {
  const { error } = payloadOf(event);
  const isExhausted = event.type === 'run.failed' && isObject(error) && error.code === 'budget_exhausted';
  return isExhausted ? { ...event, payload: { ...event.payload, error: error.code } } : event;
}

/** Changes variables of a run while it runs, as no operation of the protocol can. */
const changeVariables = operation({
  operationId: 'seamRunVariables',
  summary: 'Test seam: change variables of a run',
  method: 'POST',
  path: '/v1/host/sample/test/runs/{runId}/variables',
  scope: 'runs:create',
  params: RunParams,
  body: Closed({ variables: AnyObject }),
  replies: { 200: Closed({ runId: Type.String(), changed: Type.Array(Type.String()) }) },
  refusals: [400, 404, 409],
  handle: ({ caller, params: { runId }, body: { variables } }, { runtime }) =>
    transact(
      () =>
        moveRun(runtime, caller.subject, runId, (run) => {
          if (isTerminal(run)) return refuse('run_terminal', 'The run has ended.', { runStatus: statusOf(run) });
          return Object.entries(variables).map(([name, next]) => {
            const previous = run.variables[name];
            const payload = { name, ...(previous === undefined ? {} : { previous }), next };
            return { type: 'variable.changed', payload } as const;
          });
        }),
      () => reply(200, { runId, changed: Object.keys(variables) }),
    ),
});

/** The test seams of the logs of runs. */
export const runLogSeams = [readEvents, changeVariables];
