import { afterAll, describe, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { node, unique, workflow } from '../../../../test/support/definitions.ts';
import { isRefusal, refuse } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { WorkflowDefinition } from '../../../protocol/running/workflows.ts';
import { type Change, changeOf, perform } from '../../../runtime/change.ts';
import { validatorFrom } from '../../../runtime/validation/schema-validator.ts';
import type { Write } from '../../../store/sql.ts';
import { hostCaller } from '../../host-caller.ts';
import type { AuditRecord } from '../../trust/audit/door.ts';
import {
  type RegisteredWorkflow,
  type ServedWorkflow,
  ServedWorkflows,
  type WorkflowCompanion,
  WorkflowCompanions,
} from './door.ts';
import { WorkflowService } from './service.ts';

const notes = { id: 'notes/0001', statements: ['CREATE TABLE notes (text TEXT NOT NULL)'] };
const note = (text: string): Write => ({ sql: 'INSERT INTO notes (text) VALUES ($1)', params: [text] });
const host = await openCapabilityHost({ tables: [notes] });
afterAll(() => host.close());

const audit = {
  entry: ({ action, target }: AuditRecord): Change => changeOf(undefined, [note(`${action} ${target}`)]),
};
const workflows = new WorkflowService(host, { audit });
const ada = callerAs('ada');

let companion: WorkflowCompanion | undefined;
host.contributed.push(WorkflowCompanions.of(async (...about) => companion?.(...about) ?? changeOf(undefined, [])));

let served: ServedWorkflow[] = [];
host.contributed.push(ServedWorkflows.of(async () => served));

const register = (definition: WorkflowDefinition) => perform(host.runtime, () => workflows.register(ada, definition));
const noted = async (id: string): Promise<string[]> => {
  const rows = await host.runtime.store.read<{ text: string }>({ sql: 'SELECT text FROM notes', params: [] });
  return rows.map(({ text }) => text).filter((text) => text.endsWith(id));
};

describe('registering a workflow', () => {
  it('adds a version and an audit entry, and does neither for the definition that is current', async () => {
    const definition = workflow([node('a')]);
    const { id } = definition;
    expect(await register(definition)).toMatchObject({ version: 1, isShared: false });
    expect(await register({ ...definition, name: 'Renamed' })).toMatchObject({ version: 2 });
    expect(await register({ ...definition, name: 'Renamed' })).toMatchObject({ version: 2 });
    expect(await noted(id)).toEqual([`workflow.register ${id}`, `workflow.replace ${id}`]);
  });

  it('decides again when another registration commits first', async () => {
    const definition = workflow([node('a')]);
    let decisions = 0;
    const outcome = await perform<RegisteredWorkflow>(host.runtime, async () => {
      const change = await workflows.register(ada, { ...definition, name: 'Second' });
      if (++decisions === 1) await register({ ...definition, name: 'First' });
      return change;
    });
    expect(decisions).toBe(2);
    expect(outcome).toMatchObject({ version: 2, definition: { name: 'Second' } });
  });

  it('commits nothing if a companion refuses, or if its expectation fails', async () => {
    const definition = workflow([node('a')]);
    const limit = refuse('conflict', 'Too many.');
    const broken: Write = { sql: 'DELETE FROM notes WHERE 1 = 0', params: [], expect: 1, expectation: 'limit' };
    companion = async () => limit;
    expect(await register(definition)).toBe(limit);
    companion = async () => changeOf(undefined, [broken], { refusals: { limit } });
    expect(await register(definition)).toBe(limit);
    companion = undefined;
    expect(await workflows.find(ada, definition.id)).toBeUndefined();
    expect(await noted(definition.id)).toEqual([]);
  });

  it('changes what new runs get at once, although plans are cached', async () => {
    const definition = workflow([node('a')]);
    const current = async () => (await host.runtime.plans.current(ada.subject, definition.id))?.plan.definition.name;
    await register({ ...definition, name: 'Old' });
    expect(await current()).toBe('Old');
    await register({ ...definition, name: 'New' });
    expect(await current()).toBe('New');
    expect(await perform(host.runtime, () => workflows.remove(ada, definition.id))).toBeUndefined();
    expect(await current()).toBeUndefined();
  });

  it.each([
    ['a reserved id', workflow([node('a')], [], { id: 'capstan-goal' }), 'conflict'],
    ['an unknown node type', workflow([node('a', 'no.such')]), 'validation_error'],
    [
      'a secret',
      workflow([node('a', 'core.noop', { config: { key: `sk-${'a1B2'.repeat(12)}` } })]),
      'validation_error',
    ],
  ])('refuses %s', async (_what, definition, refused) => {
    expect(await register(definition)).toMatchObject({ refused });
  });
});

describe('registering a workflow for every tenant', () => {
  it('checks its schemas without the threads that are for the schemas of tenants', async () => {
    const noThreads = validatorFrom(
      () => ({ unusable: 'a thread was asked' }),
      async () => {},
    );
    const service = new WorkflowService({ ...host, runtime: { ...host.runtime, schemas: noThreads } }, { audit });
    const withSchema = (schema: JsonObject) => workflow([node('a')], [], { configurableSchema: schema });
    // Not so plain that it is seen to be valid without a thread.
    const schema = { properties: { a: { pattern: '^x' } } };
    expect(await service.register(ada, withSchema(schema))).toMatchObject({ refused: 'validation_error' });
    expect(isRefusal(await service.registerShared(withSchema(schema)))).toBe(false);
    expect(await service.registerShared(withSchema({ type: 'nonsense' }))).toMatchObject({
      refused: 'validation_error',
    });
  });
});

describe('removing and replacing', () => {
  it('is refused for a workflow that the caller does not have', async () => {
    const definition = workflow([node('a')]);
    await perform(host.runtime, () => workflows.registerShared(definition));
    expect(isRefusal(await workflows.remove(ada, definition.id))).toBe(true);
    expect(isRefusal(await workflows.replace(ada, workflow([node('a')], [], { id: unique('unknown') })))).toBe(true);
  });
});

describe('what starts runs of shared workflows', () => {
  it('goes for every workflow and tenant that is not served any more, unless the tenant has its own', async () => {
    const [shared, gone, own] = [workflow([node('a')]), workflow([node('a')]), workflow([node('a')])];
    await register(own);
    const servedFor = hostCaller('alpha');
    await perform(host.runtime, () => workflows.registerShared(shared, { servedFor }));
    served = ['alpha', 'beta'].flatMap((tenant_name) =>
      [shared, gone].map(({ id }) => ({ tenant_name, workflow_id: id })),
    );
    served.push({ tenant_name: 'alpha', workflow_id: own.id });
    const removed: string[][] = [];
    companion = async ({ subject }, workflowId, definition) => {
      expect(definition).toBeUndefined();
      removed.push([subject.tenantName, workflowId]);
      return changeOf(undefined, []);
    };
    await perform(host.runtime, () => workflows.withdrawShared());
    companion = undefined;
    expect(removed).toEqual([
      ['alpha', gone.id],
      ['beta', shared.id],
      ['beta', gone.id],
    ]);
  });
});
