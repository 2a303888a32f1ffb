import type { NodeContext, Outcome } from '../../../runtime/node-type.ts';

/** The agent whose result a fixture wants to be wrong, so that the refusal can be tested. */
export function agentThatErrs({ workflow, inputs }: Pick<NodeContext, 'workflow' | 'inputs'>): string | undefined {
  return inputs.scenario === 'mock-return-violation' ? workflow.metadata.requiresAgentId : undefined;
}

/** Checks an empty object as the result of an agent. */
export async function returnNothing({ effects, schemas }: NodeContext, agentId: string): Promise<Outcome> {
  const { agent } = await effects.agent({ agentId });
  const problems = agent?.returnSchema ? await schemas.validate(agent.returnSchema, {}) : [];
  if (problems.length === 0) return { done: {} };
  const message = `The result of the agent does not match its schema: ${problems.join('; ')}.`;
  return { failed: { code: 'handoff_return_schema_violation', message, retryable: false } };
}
