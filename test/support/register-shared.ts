import { WorkflowService } from '../../src/capabilities/running/workflows/service.ts';
import { isRefusal } from '../../src/protocol/errors.ts';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import { perform, unchanged } from '../../src/runtime/change.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';

/** Registers workflows for every tenant, straight through the service; throws if one is refused. */
export async function registerShared(runtime: Runtime, ...definitions: readonly WorkflowDefinition[]): Promise<void> {
  const workflows = new WorkflowService(
    { runtime, extensions: () => [] },
    { audit: { entry: () => unchanged(undefined) } },
  );
  for (const definition of definitions) {
    const outcome = await perform(runtime, () => workflows.registerShared(definition));
    if (isRefusal(outcome)) throw new Error(outcome.message);
  }
}
