import { appendFileSync } from 'node:fs';
import { defineNode, runWorker, Type } from '../../src/build/index.ts';

/** A worker as a process of its own, that tests kill and stop: `node worker-process.ts <url> <key> <typeId> <file>`. */

const [url = '', key = '', typeId = '', file = '', leaseSeconds = '2'] = process.argv.slice(2);
const note = (line: object): void => appendFileSync(file, `${JSON.stringify({ pid: process.pid, ...line })}\n`);

const charge = defineNode({
  typeId,
  description: 'Charges a customer, and writes down that it did.',
  safety: 'write',
  inputs: Type.Object({ amount: Type.Number() }),
  run: async ({ runId, inputs, effect, sleep }) => {
    const first = await effect('charge', ({ idempotencyKey }) => {
      note({ runId, did: 'charge', idempotencyKey });
      return { amount: inputs.amount, idempotencyKey };
    });
    await sleep(20);
    const second = await effect('mail', ({ idempotencyKey }) => {
      note({ runId, did: 'mail', idempotencyKey });
      return idempotencyKey;
    });
    return { ...first, second };
  },
});

await runWorker({ url, key, nodes: [charge], concurrency: 4, leaseSeconds: Number(leaseSeconds) });
