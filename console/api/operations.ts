import { queryOptions } from '@tanstack/react-query';
import type { DeliveryState, TriggerOutcome } from '../../src/protocol/format/choices.ts';
import { isObject } from '../../src/protocol/format/json.ts';
import { client } from './client.ts';

const LISTED_MAX = 200;

/** The keys of the tenant, without the keys themselves. */
export const keysQuery = queryOptions({
  queryKey: ['keys'],
  queryFn: async ({ signal }) => (await client.listApiKeys({ limit: LISTED_MAX }, { signal })).items,
});

/** The latest entries of the audit log. */
export const auditQuery = queryOptions({
  queryKey: ['audit'],
  queryFn: async ({ signal }) => (await client.listAudit({ limit: LISTED_MAX }, { signal })).items,
});

/** Whether the audit log is as it was written. */
export const auditCheckQuery = queryOptions({
  queryKey: ['audit-check'],
  queryFn: ({ signal }) => client.verifyAudit({}, { signal }),
  staleTime: 60_000,
});

/** The webhooks of the tenant. */
export const webhooksQuery = queryOptions({
  queryKey: ['webhooks'],
  queryFn: async ({ signal }) => (await client.listWebhooks({ limit: LISTED_MAX }, { signal })).items,
});

/** What was sent to a webhook, or was to be. */
export const deliveriesQuery = (webhookId: string, state: DeliveryState | undefined) =>
  queryOptions({
    queryKey: ['deliveries', webhookId, state],
    queryFn: async ({ signal }) => {
      const query = { limit: LISTED_MAX, ...(state && { state }) };
      return (await client.listWebhookDeliveries(webhookId, query, { signal })).items;
    },
  });

/** What came of the requests to a trigger. */
export const triggerDeliveriesQuery = (triggerId: string, outcome: TriggerOutcome | undefined) =>
  queryOptions({
    queryKey: ['trigger-deliveries', triggerId, outcome],
    queryFn: async ({ signal }) => {
      const query = { limit: LISTED_MAX, ...(outcome && { outcome }) };
      return (await client.listTriggerDeliveries(triggerId, query, { signal })).items;
    },
    refetchInterval: 5_000,
  });

/** The schedules of the tenant. */
export const schedulesQuery = queryOptions({
  queryKey: ['schedules'],
  queryFn: async ({ signal }) => (await client.listSchedules({ limit: LISTED_MAX }, { signal })).items,
});

/** The prompts of the tenant and of its packs. */
export const promptsQuery = queryOptions({
  queryKey: ['prompts'],
  queryFn: async ({ signal }) => (await client.listPromptTemplates({ limit: LISTED_MAX }, { signal })).items,
});

/** The agents that nodes may name. */
export const agentsQuery = queryOptions({
  queryKey: ['agents'],
  queryFn: async ({ signal }) => (await client.listAgents({ signal })).agents,
});

/** The tools that agents may call. */
export const toolsQuery = queryOptions({
  queryKey: ['tools'],
  queryFn: async ({ signal }) => (await client.listTools({}, { signal })).tools,
});

/** The installed packs. */
export const packsQuery = queryOptions({
  queryKey: ['packs'],
  queryFn: async ({ signal }) => (await client.listPacks({ limit: LISTED_MAX }, { signal })).items,
});

/** What the host says that it can do, and how long it took to say so. */
export const hostQuery = queryOptions({
  queryKey: ['host'],
  queryFn: async ({ signal }) => {
    const asked = performance.now();
    const document = await client.getCapabilities({ signal });
    return { document, tookMs: performance.now() - asked };
  },
  refetchInterval: 15_000,
});

/** How the hosts, the queue and the store are. */
export const healthQuery = queryOptions({
  queryKey: ['health'],
  queryFn: ({ signal }) => client.getHostHealth({ signal }),
  refetchInterval: 15_000,
});

/** The node types that workers serve. */
export const workerTypesQuery = queryOptions({
  queryKey: ['worker-types'],
  queryFn: async ({ signal }) => (await client.listWorkerTypes({ signal })).items,
  refetchInterval: 5_000,
});

/** The attempts that wait for a worker, or that one has. */
export const workerTasksQuery = queryOptions({
  queryKey: ['worker-tasks'],
  queryFn: async ({ signal }) => (await client.listWorkerTasks({ signal })).items,
  refetchInterval: 5_000,
});

/** The triggers that others set off. */
export const triggersQuery = queryOptions({
  queryKey: ['triggers'],
  queryFn: async ({ signal }) => (await client.listTriggers({ limit: LISTED_MAX }, { signal })).items,
});

/** The types of events that a webhook can be told about: the API document of the host lists them. */
export const webhookEventsQuery = queryOptions({
  queryKey: ['webhook-events'],
  queryFn: async ({ signal }): Promise<readonly string[]> => {
    const path = 'paths./v1/webhooks.post.requestBody.content.application/json.schema';
    const registration = valueIn(await client.getOpenApi({ signal }), path.split('.'));
    const choices = valueIn(registration, ['properties', 'events', 'items']);
    const listed = valueIn(choices, ['enum']) ?? valueIn(choices, ['anyOf']);
    if (!Array.isArray(listed)) return [];
    return listed.map((each) => String(valueIn(each, ['const']) ?? each));
  },
  staleTime: Number.POSITIVE_INFINITY,
});

function valueIn(value: unknown, path: readonly string[]): unknown {
  return path.reduce((found, name) => (isObject(found) ? found[name] : undefined), value);
}
