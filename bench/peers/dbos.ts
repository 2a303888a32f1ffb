/** A DBOS workflow with one step: `node dbos.ts <database URL>`. */
import { DBOS } from '@dbos-inc/dbos-sdk';
import { serve } from './serve.ts';

const [systemDatabaseUrl] = process.argv.slice(2);

async function noop(): Promise<string> {
  return DBOS.runStep(async () => 'done', { name: 'noop' });
}
const workflow = DBOS.registerWorkflow(noop, { name: 'noop' });

// As many connections as runs at once: with the ten that are the default, runs would wait for one.
DBOS.setConfig({ name: 'bench', systemDatabaseUrl, systemDatabasePoolSize: 32, logLevel: 'error' });
await DBOS.launch();
await serve(() => workflow());
