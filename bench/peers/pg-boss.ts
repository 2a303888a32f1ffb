/**
 * A pg-boss job that is sent, fetched and completed: `node pg-boss.ts <database URL>`. Jobs are fetched as soon as there
 * are some, and as many at once as there are, which is the best that a worker of pg-boss can do.
 */
import { PgBoss } from 'pg-boss';
import { serve } from './serve.ts';

const QUEUE = 'noop';
const BATCH = 32;

const boss = new PgBoss({ connectionString: process.argv[2], max: 32 });
boss.on('error', console.error);
await boss.start();
await boss.createQueue(QUEUE);

const waiting = new Map<string, () => void>();
let isFetching = false;

await serve(async () => {
  const id = await boss.send(QUEUE, {});
  const isDone = new Promise<void>((resolve) => waiting.set(id!, resolve));
  if (!isFetching) void fetchAll();
  await isDone;
});

async function fetchAll(): Promise<void> {
  isFetching = true;
  while (waiting.size > 0) {
    const ids = (await boss.fetch(QUEUE, { batchSize: BATCH })).map(({ id }) => id);
    if (ids.length === 0) continue;
    await boss.complete(QUEUE, ids, { result: 'done' });
    for (const id of ids) settle(id);
  }
  isFetching = false;
}

/** Another request's turn may have fetched a job before its own request knows the id. */
function settle(id: string): void {
  const resolve = waiting.get(id);
  waiting.delete(id);
  if (resolve) resolve();
  else setImmediate(settle, id);
}
