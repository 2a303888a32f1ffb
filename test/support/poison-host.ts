import { Type } from 'typebox';
import { defineCapability } from '../../src/capabilities/capability.ts';
import { readConfig } from '../../src/config.ts';
import { startHost } from '../../src/host.ts';
import { realClock, realIds } from '../../src/system/real.ts';
import { realLog } from '../../src/system/real-log.ts';

/** A host with a node type that takes the process down, as running out of memory does, and one that takes its time. */
const poison = defineCapability({
  name: 'poison',
  nodes: () => [
    {
      typeId: 'vendor.test.poison',
      description: 'For tests.',
      role: 'pure',
      run: () => {
        process.kill(process.pid, 'SIGKILL');
        return { done: {} };
      },
    },
    {
      typeId: 'vendor.test.slow',
      description: 'For tests.',
      config: Type.Object({ ms: Type.Number() }),
      role: 'pure',
      run: async ({ config, sleep }) => {
        await sleep(Number(config.ms));
        return { done: {} };
      },
    },
  ],
  build: () => ({}),
});

const config = readConfig();
const host = await startHost(config, { clock: realClock, ids: realIds(), log: await realLog('silent', false) }, [
  poison,
]);
console.log(`listening on ${host.url}`);
