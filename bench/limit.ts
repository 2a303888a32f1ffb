/**
 * The limit that we measure ourselves against: the rows of a run in two commits, its start and its end, behind the same
 * HTTP framework, with the same embedded database and the same flush, and nothing else: no rules, no checks, no audit, no
 * executor. The host stores a run of pure nodes with one commit, which saves it the work item that is inserted and deleted
 * here. `node limit.ts <folder> 3` makes a third commit, for the step alone.
 */
import { DatabaseSync } from 'node:sqlite';
import Fastify from 'fastify';
import { statementsFor } from '../src/store/store.ts';
import { CORE_TABLES } from '../src/store/tables.ts';
import { WalFlush } from '../src/store/wal-flush.ts';
import { realClock } from '../src/system/real.ts';

const [folder = '', commits = '2'] = process.argv.slice(2);
const database = new DatabaseSync(`${folder}/limit.db`);
database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4000');
for (const statement of CORE_TABLES.flatMap((migration) => statementsFor('sqlite', migration))) {
  database.exec(statement.replaceAll('$clustered', 'WITHOUT ROWID'));
}
const insertRun = database.prepare(
  `INSERT INTO runs VALUES (?, 'alpha', NULL, 'p', 'urn:capstan:api-key', 'api-key', '*', 'conformance-noop', 1, NULL, NULL,
     '{"tenantName":"alpha","inputs":{},"configurable":{},"limits":{"maxNodeExecutions":10000,"maxRunDurationMs":30000},"depth":0}',
     1, 2, ?, 'running', 0, ?, NULL, NULL, NULL)`,
);
const insertWork = database.prepare(
  `INSERT INTO work VALUES (?, 'run', 'alpha', '', NULL, 'host-1', 1, 0, 0, 0, NULL)`,
);
const insertEvent = database.prepare('INSERT INTO events VALUES (?, ?, ?, ?, NULL)');
const endRun = database.prepare(
  `UPDATE runs SET sequence = 3, status = 'completed', updated_at = ?, ended_at = ? WHERE run_id = ?`,
);
const endWork = database.prepare('DELETE FROM work WHERE work_id = ?');
const running = database.prepare(`SELECT run_id FROM runs WHERE status = 'running' AND ended_at IS NULL LIMIT 1`);

const wal = new WalFlush(`${folder}/limit.db-wal`, {
  clock: realClock,
  onStop: (failure) => {
    throw failure;
  },
});
let waiting: { write: () => void; done: () => void }[] = [];
let isFlushing = false;

/** Writes that arrive together, or while the disk works, share one commit, as they do in the host. */
function commit(write: () => void): Promise<void> {
  return new Promise((done) => {
    if (waiting.push({ write, done }) === 1 && !isFlushing) setImmediate(flush);
  });
}

async function flush(): Promise<void> {
  isFlushing = true;
  const group = waiting;
  waiting = [];
  database.exec('BEGIN IMMEDIATE');
  for (const { write } of group) write();
  database.exec('COMMIT');
  await wal.flush();
  isFlushing = false;
  for (const { done } of group) done();
  if (waiting.length > 0) setImmediate(flush);
}

const event = (runId: string, sequence: number, type: string, payload: object): string => {
  const timestamp = new Date().toISOString();
  const body = JSON.stringify({
    eventId: `${runId}-${sequence}`,
    runId,
    sequence,
    type,
    payload,
    timestamp,
    schemaVersion: 1,
    engineVersion: '1',
  });
  insertEvent.run(runId, sequence, type, body);
  return body;
};

/** What is to be told of runs that have ended, or will. */
const endings = new Map<string, Promise<string>>();

async function execute(runId: string, started: string, now: number): Promise<string> {
  const bodies = [started];
  const step = (): void => {
    bodies.push(event(runId, 1, 'node.started', { nodeId: 'noop', typeId: 'core.noop', attempt: 0 }));
    bodies.push(event(runId, 2, 'node.completed', { nodeId: 'noop' }));
  };
  if (commits === '3') await commit(step);
  await commit(() => {
    if (commits !== '3') step();
    bodies.push(event(runId, 3, 'run.completed', {}));
    endRun.run(now, now, runId);
    endWork.run(runId);
  });
  return bodies.join(',');
}

let count = 0;
const app = Fastify();

/** Makes a run, and gives its id and its end to come. */
async function begin(workflowId: string): Promise<{ runId: string; ending: Promise<string> }> {
  const runId = `run-${String(++count).padStart(22, '0')}`;
  const now = Date.now();
  let started = '';
  await commit(() => {
    insertRun.run(runId, now, now);
    started = event(runId, 0, 'run.started', {
      workflowId,
      transport: 'rest',
      engineVersion: '1',
      owner: { tenant: 'alpha', principal: 'p' },
    });
    insertWork.run(runId);
  });
  return { runId, ending: execute(runId, started, now) };
}

app.post('/v1/runs', async (request, reply) => {
  const { workflowId } = request.body as { workflowId: string };
  const { runId, ending } = await begin(workflowId);
  endings.set(runId, ending);
  return reply.code(201).send({ runId, status: 'running', eventsUrl: `/v1/runs/${runId}/events` });
});
app.post('/v1/host/capstan/calls', async (request) => {
  const { runId, ending } = await begin((request.body as { workflowId: string }).workflowId);
  await ending;
  return { runId, status: 'completed', statusUrl: `/v1/runs/${runId}`, outputs: {} };
});
app.get('/v1/runs/:runId/events/poll', async (request, reply) => {
  const { runId } = request.params as { runId: string };
  const bodies = await endings.get(runId);
  endings.delete(runId);
  return reply
    .type('application/json')
    .send(`{"runId":"${runId}","isComplete":true,"lastEventSeq":3,"runStatus":"completed","events":[${bodies}]}`);
});
app.get('/v1/host/capstan/runs', async () => ({ items: running.all() }));
console.log(`listening on ${await app.listen({ port: 0, host: '127.0.0.1' })}`);
