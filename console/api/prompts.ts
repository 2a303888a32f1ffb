import { queryOptions } from '@tanstack/react-query';
import { client } from './client.ts';

/** A prompt in its latest version. */
export const promptQuery = (templateId: string) =>
  queryOptions({
    queryKey: ['prompt', templateId],
    queryFn: ({ signal }) => client.getPromptTemplate(templateId, {}, { signal }),
  });

/** A version of a prompt, which never changes. */
export const versionOfPromptQuery = (templateId: string, version: string) =>
  queryOptions({
    queryKey: ['prompt', templateId, version],
    queryFn: ({ signal }) => client.getPromptTemplate(templateId, { version }, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** The versions of a prompt, the latest first. */
export const promptVersionsQuery = (templateId: string) =>
  queryOptions({
    queryKey: ['prompt', templateId, 'versions'],
    queryFn: async ({ signal }) => (await client.listPromptVersions(templateId, { signal })).items,
  });

/** The models that nodes may name, by provider; they change only with the host. */
export const modelsQuery = queryOptions({
  queryKey: ['models'],
  queryFn: async ({ signal }) => (await client.listModels({ signal })).items,
  staleTime: Number.POSITIVE_INFINITY,
});
