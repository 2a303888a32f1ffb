import type { PlannedNode } from '../engine/definition/plan.ts';
import type { Run } from '../engine/run/run.ts';
import { NodeFailure } from './node-failure.ts';
import type { NodeType } from './node-type.ts';
import type { Runtime } from './runtime.ts';

/**
 * The type of a node in a run. In a workflow whose `metadata.requiresAgentId` names an agent, the first nodes are called
 * only with inputs that fit the task schema of that agent. Looking up the agent is an effect, so a replay takes their
 * outcome from the log.
 */
export function nodeTypeIn(
  { catalog }: Pick<Runtime, 'catalog'>,
  run: Run,
  planned: PlannedNode,
): NodeType | undefined {
  const type = catalog.get(planned.node.typeId);
  const { requiresAgentId: agentId } = run.plan.definition.metadata;
  if (!type || agentId === undefined || planned.incoming.length > 0) return type;
  return {
    ...type,
    role: 'side-effect',
    run: async (context) => {
      const { agent } = await context.effects.agent({ agentId });
      if (!agent) throw failure('agent_not_found', `The workflow needs the agent ${JSON.stringify(agentId)}.`);
      const problems = agent.taskSchema ? await context.schemas.validate(agent.taskSchema, run.facts.inputs) : [];
      if (problems.length === 0) return type.run(context);
      const message = `The inputs do not match the task schema of the agent that the workflow needs: ${problems.join('; ')}.`;
      throw failure('handoff_task_schema_violation', message);
    },
  };
}

function failure(code: string, message: string): NodeFailure {
  return new NodeFailure({ code, message, retryable: false });
}
