import { Type } from 'typebox';
import { type AgentPrompts, choosePrompt } from '../../../engine/models/prompt-chain.ts';
import { composedPayload } from '../../../engine/models/prompt-text.ts';
import { ContentTrust, PromptComposed, PromptKind, PromptResolved } from '../../../protocol/ai/prompts.ts';
import { NOT_FOUND, refuse } from '../../../protocol/errors.ts';
import { own } from '../../../protocol/format/json.ts';
import { AnyObject, MapOf, NonEmpty, OneOf } from '../../../protocol/format/schema.ts';
import { promptRefsOf } from '../../../runtime/prompts.ts';
import type { Prompts } from '../../ai/prompts/door.ts';
import { reply, route } from '../../request.ts';

const operation = route<{ readonly prompts: Prompts }>();
const Optional = Type.Optional;

/** Resolves a prompt from the layers in the request, without a workflow. */
const resolvePrompt = operation({
  operationId: 'seamResolvePrompt',
  summary: 'Test seam: resolve the prompt of a node',
  method: 'POST',
  path: '/v1/host/sample/prompt/resolve',
  scope: 'prompts:read',
  body: Type.Object({
    kind: PromptKind,
    node: Type.Object({ nodeId: NonEmpty, config: Optional(AnyObject) }),
    agentManifest: Optional(
      Type.Object({
        agentId: NonEmpty,
        systemPrompt: Optional(Type.String()),
        systemPromptRef: Optional(Type.String()),
        promptOverrides: Optional(AnyObject),
      }),
    ),
    workflowDefaults: Optional(Type.Object({ promptRefs: Optional(AnyObject) })),
    hostDefaults: Optional(AnyObject),
  }),
  replies: { 200: PromptResolved },
  refusals: [400],
  handle: ({ body: { kind, node, agentManifest, workflowDefaults, hostDefaults } }) => {
    const isBound = agentManifest !== undefined && node.config?.agentId === agentManifest.agentId;
    const { chain, resolved } = choosePrompt({
      kind,
      node: promptRefsOf(node.config ?? {}, kind)[0],
      agent: isBound ? (agentManifest as AgentPrompts) : undefined,
      workflow: own(workflowDefaults?.promptRefs, kind),
      host: own(hostDefaults, kind),
    });
    const agent = isBound ? { agentId: agentManifest.agentId } : {};
    return reply(200, { nodeId: node.nodeId, kind, ...agent, chain, resolved });
  },
});

/** Composes a prompt and returns the event that a node would record. */
const composePrompt = operation({
  operationId: 'seamComposePrompt',
  summary: 'Test seam: compose a prompt and return its event',
  method: 'POST',
  path: '/v1/host/sample/prompt/compose',
  scope: 'prompts:read',
  body: Type.Object({
    templateId: NonEmpty,
    bindings: Optional(AnyObject),
    bindingTrust: Optional(MapOf(ContentTrust)),
    observability: Optional(OneOf(['hashed', 'full'])),
  }),
  replies: { 200: PromptComposed },
  refusals: [400, 404],
  handle: async ({ caller, body }, { prompts }) => {
    const { templateId, bindings = {}, bindingTrust, observability = 'hashed' } = body;
    const found = await prompts.find(caller.subject, { templateId });
    if (!found) return NOT_FOUND;
    const secrets = (found.template.variables ?? []).filter(({ source }) => source === 'secret');
    const named = Object.fromEntries(secrets.map(({ name }) => [name, bindings.secretRef]));
    const composed = prompts.compose(found.template, {
      variables: { ...named, ...bindings },
      trustOf: ({ name }) => own(bindingTrust, name) ?? 'untrusted',
    });
    if ('problem' in composed) {
      return refuse(composed.problem.code, composed.problem.message, composed.problem.details);
    }
    return reply(200, composedPayload('seam', found.template.kind, composed, observability));
  },
});

/** The test seams of prompts. */
export const promptSeams = [resolvePrompt, composePrompt];
