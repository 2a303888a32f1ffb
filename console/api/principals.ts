import { queryOptions } from '@tanstack/react-query';
import { isKeyId, PRINCIPALS_MAX, principalName } from '../../src/protocol/trust/principals.ts';
import { client } from './client.ts';

/** Principals that a page has begun to ask for, each with those who wait for its name. */
let asked = new Map<string, PromiseWithResolvers<string>>();

/** What people call a principal. Only the principals of keys for which nobody chose one have other names. */
export const principalQuery = (principal: string, isEnabled: boolean) =>
  queryOptions({
    queryKey: ['principal', principal],
    queryFn: () => nameLater(principal),
    enabled: isEnabled && isKeyId(principal),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** All names that one rendering of a page needs are one request. */
function nameLater(principal: string): Promise<string> {
  if (asked.size === 0 || asked.size === PRINCIPALS_MAX) {
    const batch: typeof asked = new Map();
    asked = batch;
    setTimeout(() => void ask(batch));
  }
  const waiting = asked.get(principal) ?? Promise.withResolvers<string>();
  asked.set(principal, waiting);
  return waiting.promise;
}

async function ask(batch: typeof asked): Promise<void> {
  if (asked === batch) asked = new Map();
  try {
    const { items } = await client.listPrincipals({ principal: [...batch.keys()].join(',') });
    const names = new Map(items.map((item) => [item.principal, principalName(item)]));
    for (const [principal, { resolve }] of batch) resolve(names.get(principal) ?? principal);
  } catch (error) {
    for (const { reject } of batch.values()) reject(error);
  }
}
