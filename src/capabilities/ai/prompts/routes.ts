import { Type } from 'typebox';
import {
  PROMPT_SOURCES,
  PromptKind,
  PromptTemplate,
  PromptVersions,
  parsePromptRef,
  RenderReply,
  RenderRequest,
  TemplateId,
  TemplateVersion,
} from '../../../protocol/ai/prompts.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { Closed, NonEmpty, OneOf } from '../../../protocol/format/schema.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { ListQuery, Page, pageRequest, readPage } from '../../page.ts';
import { NO_CONTENT, type Reply, reply, route, transact } from '../../request.ts';
import type { Prompts, RegisteredPrompt } from './door.ts';
import { checkWorkspace } from './rules.ts';

const operation = route<{ readonly prompts: Prompts }>();

const Optional = Type.Optional;
const PROMPTS = '/v1/prompts';
const PromptParams = Closed({ templateId: Type.String({ minLength: 1, maxLength: 128 }) });
const WorkspaceId = Optional(Type.String({ minLength: 1, maxLength: 256, description: 'Must be your own' }));
const Workspace = Closed({ workspaceId: WorkspaceId });

const SubmittedTemplate = Closed(
  { ...PromptTemplate.properties, workspaceId: WorkspaceId },
  { $id: 'SubmittedPromptTemplate' },
);

const listPrompts = operation({
  operationId: 'listPromptTemplates',
  summary: 'The prompt templates that you may use, each in its latest version',
  method: 'GET',
  path: PROMPTS,
  scope: 'prompts:read',
  query: ListQuery({
    kind: Optional(PromptKind),
    tag: Optional(NonEmpty),
    modelClass: Optional(NonEmpty),
    source: Optional(OneOf(PROMPT_SOURCES)),
    workspaceId: WorkspaceId,
  }),
  replies: { 200: Page(PromptTemplate) },
  refusals: [400, 403],
  handle: async ({ caller, query }, { prompts }) => {
    const refusal = checkWorkspace(caller, query.workspaceId);
    if (refusal) return refusal;
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const found = readPage(page, {
      read: (after, limit) => prompts.list(caller, query, after ?? '', limit),
      show: ({ template }) => template,
      positionOf: ({ template }) => template.templateId,
    });
    return reply(200, await found);
  },
});

const getPrompt = operation({
  operationId: 'getPromptTemplate',
  summary: 'A prompt template, in its latest version unless another is named',
  method: 'GET',
  path: `${PROMPTS}/{templateId}`,
  scope: 'prompts:read',
  params: PromptParams,
  query: Closed({
    version: Optional(TemplateVersion),
    libraryId: Optional(TemplateId),
    workspaceId: WorkspaceId,
  }),
  replies: { 200: PromptTemplate, 304: 'nothing' },
  refusals: [403, 404],
  handle: async ({ caller, params, query, header }, { prompts }) => {
    const { workspaceId, ...which } = query;
    const refusal = checkWorkspace(caller, workspaceId);
    if (refusal) return refusal;
    const found = await prompts.find(caller.subject, { ...params, ...which });
    if (!found) return NOT_FOUND;
    return unlessCached(header('if-none-match'), found, which.version !== undefined);
  },
});

const listPromptVersions = operation({
  operationId: 'listPromptVersions',
  summary: 'List the versions of a prompt template, the latest first',
  method: 'GET',
  path: '/v1/host/capstan/prompts/{templateId}/versions',
  scope: 'prompts:read',
  params: PromptParams,
  replies: { 200: PromptVersions },
  refusals: [404],
  handle: async ({ caller, params: { templateId } }, { prompts }) => {
    const found = await prompts.usable(caller.subject, templateId);
    if (found.length === 0) return NOT_FOUND;
    const items = found.map(({ version, createdAt }) => ({ version, createdAt: new Date(createdAt).toISOString() }));
    return reply(200, { items });
  },
});

/** A version never changes; which one is the latest may. Caches are private, because callers see different libraries. */
function unlessCached(cachedTags: string | undefined, { template: found }: RegisteredPrompt, isPinned: boolean): Reply {
  const text = JSON.stringify(found);
  const etag = `"${sha256Hex(text)}"`;
  const age = isPinned ? 'max-age=31536000, immutable' : 'max-age=60';
  const headers = { ETag: etag, 'Cache-Control': `private, ${age}`, Vary: 'Authorization' };
  const isCached = cachedTags?.split(',').some((tag) => ['*', etag, `W/${etag}`].includes(tag.trim()));
  return isCached ? { status: 304, headers } : { status: 200, headers, text };
}

const createPrompt = operation({
  operationId: 'createPromptTemplate',
  summary: 'Add a prompt template, or a later version of one',
  method: 'POST',
  path: PROMPTS,
  scope: 'prompts:write',
  body: SubmittedTemplate,
  replies: { 201: PromptTemplate },
  refusals: [400, 403, 409],
  handle: ({ caller, body }, { prompts }) => {
    const { workspaceId, ...submitted } = body;
    const refusal = checkWorkspace(caller, workspaceId);
    if (refusal) return refusal;
    return transact(
      () => prompts.install(caller, submitted),
      ({ template }) => reply(201, template, { Location: `${PROMPTS}/${template.templateId}` }),
    );
  },
});

const updatePrompt = operation({
  operationId: 'updatePromptTemplate',
  summary: 'Add a later version to a prompt template; runs that used the earlier one keep it',
  method: 'PUT',
  path: `${PROMPTS}/{templateId}`,
  scope: 'prompts:write',
  params: PromptParams,
  query: Workspace,
  body: SubmittedTemplate,
  replies: { 200: PromptTemplate },
  refusals: [400, 403, 404, 409],
  handle: ({ caller, params, query, body }, { prompts }) => {
    const { workspaceId, ...submitted } = body;
    const refusal =
      checkWorkspace(caller, workspaceId) ??
      checkWorkspace(caller, query.workspaceId) ??
      checkSameId(submitted.templateId, params.templateId);
    if (refusal) return refusal;
    return transact(
      () => prompts.update(caller, submitted),
      ({ template }) => reply(200, template),
    );
  },
});

function checkSameId(inBody: string, inPath: string): Refusal | undefined {
  if (inBody === inPath) return undefined;
  return refuse('validation_error', 'The template id in the body differs from the one in the path.', {
    field: 'templateId',
  });
}

const deletePrompt = operation({
  operationId: 'deletePromptTemplate',
  summary: 'Remove a prompt template with all its versions; runs that have begun still find them',
  method: 'DELETE',
  path: `${PROMPTS}/{templateId}`,
  scope: 'prompts:write',
  params: PromptParams,
  query: Workspace,
  replies: { 204: 'nothing' },
  refusals: [403, 404],
  handle: ({ caller, params, query }, { prompts }) =>
    checkWorkspace(caller, query.workspaceId) ??
    transact(
      () => prompts.remove(caller, params.templateId),
      () => NO_CONTENT,
    ),
});

const renderPrompt = operation({
  operationId: 'renderPromptTemplate',
  summary: 'Render a prompt template with some values, without calling a model',
  method: 'POST',
  path: `${PROMPTS}:render`,
  scope: 'prompts:read',
  body: RenderRequest,
  replies: { 200: RenderReply },
  refusals: [400, 403, 404],
  handle: async ({ caller, body }, { prompts }) => {
    const refusal = checkWorkspace(caller, body.workspaceId);
    if (refusal) return refusal;
    const outcome = await prompts.render(caller, {
      target: parsePromptRef(body.ref)!,
      variables: body.variables ?? {},
      // Values without a trust mark are not trusted.
      contentTrust: body.contentTrust ?? 'untrusted',
    });
    if (isRefusal(outcome)) return outcome;
    const { shown, hash, ref, variableHashes, contentTrust } = outcome;
    return reply(200, { composed: shown, hash, refs: [ref], variableHashes, contentTrust });
  },
});

/** The operations of the prompt library. */
export const routes = [
  listPrompts,
  getPrompt,
  listPromptVersions,
  createPrompt,
  updatePrompt,
  deletePrompt,
  renderPrompt,
];
