import { afterAll, expect, it } from 'vitest';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { openServiceHost } from '../../../../test/support/service-host.ts';
import { NODES } from '../../running/nodes/standard.ts';
import { listExposed, MCP_SERVER_TABLES } from './records.ts';

const { host, store, close } = await openServiceHost({ tables: MCP_SERVER_TABLES, nodes: NODES });
afterAll(close);

it('finds exposed workflows without reading the definitions of others', async () => {
  const mcp = { exposeAsTool: true, description: 'Does it.' };
  await registerShared(host.runtime, workflow([node('a')], [], { id: 'shown-b', metadata: { mcp } }));
  await registerShared(host.runtime, workflow([node('a')], [], { id: 'shown-a', metadata: { mcp } }));
  await registerShared(host.runtime, workflow([node('a')], [], { id: 'other' }));
  await registerShared(host.runtime, workflow([node('a')], [], { id: 'no-longer', metadata: { mcp } }));
  await registerShared(host.runtime, workflow([node('a')], [], { id: 'no-longer' }));
  const names = async (after: string) =>
    (await store.read<{ body: string }>(listExposed({ tenant: 'alpha' }, after, 10))).map(
      ({ body }) => (JSON.parse(body) as { id: string }).id,
    );
  expect(await names('')).toEqual(['shown-a', 'shown-b']);
  expect(await names('shown-a')).toEqual(['shown-b']);

  const { sql, params } = listExposed({ tenant: 'alpha' }, '', 10);
  const plan = await store.read<{ detail: string }>({ sql: `EXPLAIN QUERY PLAN ${sql}`, params });
  const looks = plan.map(({ detail }) => detail).filter((detail) => detail.includes(' definitions '));
  expect(looks).toEqual([
    expect.stringContaining('USING INDEX definitions_exposed'),
    expect.stringContaining('USING PRIMARY KEY (owner=? AND workflow_id=? AND version=?)'),
  ]);
});
