import type { PromptTemplate } from '../../../protocol/ai/prompts.ts';
import { canonicalJson } from '../../../protocol/format/json.ts';
import { HOST_OWNER } from '../../../store/definitions.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { RegisteredPrompt } from './door.ts';
import type { VersionRow } from './records.ts';

/** The template without the metadata that the host adds: what is stored, and what its digest is of. */
export function bodyOf({ meta, ...template }: PromptTemplate): PromptTemplate {
  return meta?.author === undefined ? template : { ...template, meta: { author: meta.author } };
}

/** Tells whether two versions have the same content. */
export function digestOf(body: PromptTemplate): string {
  return sha256Hex(canonicalJson(body));
}

/** A stored version as callers see it. */
export function registeredOf(row: VersionRow): RegisteredPrompt {
  const submitted = JSON.parse(row.body) as PromptTemplate;
  const source = row.owner === HOST_OWNER ? 'host' : 'user';
  const createdAt = new Date(row.created_at).toISOString();
  const template = { ...submitted, meta: { ...submitted.meta, createdAt, source } } satisfies PromptTemplate;
  return { template, submitted, source, digest: row.digest };
}
