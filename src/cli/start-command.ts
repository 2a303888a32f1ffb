import type { AuthoredWorkflow } from '../protocol/running/workflows.ts';

/** The command that starts a run of a workflow, with a place for every input that it cannot do without. */
export function startCommand({ id, variables = [] }: Pick<AuthoredWorkflow, 'id' | 'variables'>): string {
  const needed = variables.filter(({ required, defaultValue }) => required === true && defaultValue === undefined);
  return ['runs start', id, ...needed.map(({ name }) => `--set ${name}=value`)].join(' ');
}
