import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { once } from '../../../protocol/format/once.ts';
import { Closed, NonEmpty } from '../../../protocol/format/schema.ts';
import { AnnotationCreate, Signal } from '../../../protocol/people/annotations.ts';
import { schemaProblemsByPath } from '../../../runtime/catalog.ts';
import type { AgentJudgement } from '../../../runtime/effects/seams.ts';
import { invalid, type NodeType } from '../../../runtime/node-type.ts';

const Optional = Type.Optional;

/** The annotation as ports of the node. Without `runId` it is about the node's own run. */
const ports = {
  ...Signal.properties,
  note: AnnotationCreate.properties.note,
  runId: Optional(NonEmpty),
  eventId: Optional(NonEmpty),
  nodeId: Optional(NonEmpty),
};
const judgementShape = once(() => Compile(Closed(ports)));

/** Annotates a run on behalf of an agent. Input ports win over the config. */
export const annotate: NodeType = {
  typeId: 'core.feedback.annotate',
  description: 'Adds feedback to the run.',
  inputs: Object.keys(ports),
  outputs: () => ['annotationId'],
  role: 'side-effect',
  config: Closed({ ...ports, kind: Optional(ports.kind) }),
  run: async ({ node, config, declared, effects }) => {
    const given = Object.entries({ ...config, ...declared }).filter(
      ([port, value]) => Object.hasOwn(ports, port) && value !== null,
    );
    const judgement = Object.fromEntries(given);
    const [misfit] = schemaProblemsByPath(judgementShape(), judgement);
    if (misfit) return invalid(`${misfit.path || 'The judgement'} ${misfit.message}.`);
    const by = { nodeId: node.id, ...(node.agent ? { agentId: node.agent.agentId } : {}) };
    const { annotationId } = await effects.annotate({ by, judgement: judgement as AgentJudgement });
    return { done: { outputs: { annotationId } } };
  },
};
