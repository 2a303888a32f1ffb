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
