import type { JsonObject } from '../../../protocol/format/json.ts';
import type { NodeContext, Outcome } from '../../../runtime/node-type.ts';

/** The agent that a fixture is about. */
export function agentNeededBy({ requiresAgentId }: JsonObject): string | undefined {
  return typeof requiresAgentId === 'string' ? requiresAgentId : undefined;
}

/** Checks the run's inputs as a task for the agent, or a result that it might have given: an empty object. */
export async function tryHandoff({ inputs, effects, schemas }: NodeContext, agentId: string): Promise<Outcome> {
  const { agent } = await effects.agent({ agentId });
  if (!agent) return failed('agent_not_found', `The agent ${JSON.stringify(agentId)} does not exist.`);
  const { scenario, ...task } = inputs;
  const violation = async (code: string, schema: JsonObject | undefined, value: unknown) => {
    const problems = schema ? await schemas.validate(schema, value) : [];
    const message = `The handoff does not match its schema: ${problems.join('; ')}.`;
    return problems.length > 0 ? failed(code, message) : undefined;
  };
  if (scenario === 'mock-return-violation') {
    return (await violation('handoff_return_schema_violation', agent.returnSchema, {})) ?? { done: {} };
  }
  return (await violation('handoff_task_schema_violation', agent.taskSchema, task)) ?? { done: {} };
}

function failed(code: string, message: string): Outcome {
  return { failed: { code, message, retryable: false } };
}
