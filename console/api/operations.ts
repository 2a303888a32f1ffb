import { queryOptions } from '@tanstack/react-query';
import type { DeliveryState } from '../../src/protocol/format/choices.ts';
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
