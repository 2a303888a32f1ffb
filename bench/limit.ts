/**
 * The limit we measure ourselves against: the same inserts, in two commits for each run, behind the same HTTP framework
 * and the same embedded database, and nothing else. No rules, no checks, no executor: nobody can serve runs faster
 * than this on this machine with this design.
 */
import { DatabaseSync } from 'node:sqlite';
import Fastify from 'fastify';
import { statementsFor } from '../src/store/store.ts';
import { CORE_TABLES } from '../src/store/tables.ts';

const database = new DatabaseSync(`${process.argv[2]}/limit.db`);
database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
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

let waiting: { write: () => void; done: () => void }[] = [];

/** Writes that arrive together share one commit, as they do in the host. */
function commit(write: () => void): Promise<void> {
  return new Promise((done) => {
    if (waiting.push({ write, done }) === 1) setImmediate(flush);
  });
}

function flush(): void {
  const group = waiting;
  waiting = [];
  database.exec('BEGIN IMMEDIATE');
  for (const { write } of group) write();
  database.exec('COMMIT');
  for (const { done } of group) done();
}

const event = (runId: string, sequence: number, type: string, payload: object): void => {
  const timestamp = new Date().toISOString();
  const body = {
    eventId: `${runId}-${sequence}`,
    runId,
    sequence,
    type,
    payload,
    timestamp,
    schemaVersion: 1,
    engineVersion: '1',
  };
  insertEvent.run(runId, sequence, type, JSON.stringify(body));
};

let count = 0;
const app = Fastify();
app.post('/v1/runs', async (request, reply) => {
  const { workflowId } = request.body as { workflowId: string };
  const runId = `run-${String(++count).padStart(22, '0')}`;
  const now = Date.now();
  await commit(() => {
    insertRun.run(runId, now, now);
    event(runId, 0, 'run.started', {
      workflowId,
      transport: 'rest',
      engineVersion: '1',
      owner: { tenant: 'alpha', principal: 'p' },
    });
    insertWork.run(runId);
  });
  void commit(() => {
    event(runId, 1, 'node.started', { nodeId: 'noop', typeId: 'core.noop', attempt: 0 });
    event(runId, 2, 'node.completed', { nodeId: 'noop' });
    event(runId, 3, 'run.completed', {});
    endRun.run(now, now, runId);
    endWork.run(runId);
  });
  return reply.code(201).send({ runId, status: 'running', eventsUrl: `/v1/runs/${runId}/events` });
});
app.get('/v1/host/capstan/runs', async () => ({ items: running.all() }));
console.log(`listening on ${await app.listen({ port: 0, host: '127.0.0.1' })}`);
