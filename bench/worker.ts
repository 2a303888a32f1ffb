/** A worker that does nothing, for the cost of handing over: `node worker.ts <url> <key>`. */
import { defineNode, runWorker } from '../src/build/index.ts';

const [url = '', key = ''] = process.argv.slice(2);
const nothing = defineNode({ typeId: 'bench.nothing', description: 'Does nothing.', safety: 'read', run: () => ({}) });
await runWorker({ url, key, nodes: [nothing], concurrency: 8 });
