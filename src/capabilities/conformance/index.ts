import { isRefusal } from '../../protocol/errors.ts';
import { CONFORMANCE_NODES } from '../../runtime/nodes/conformance.ts';
import type { Capability, Host } from '../capability.ts';
import { workflowService } from '../workflows/service.ts';
import { FIXTURES } from './fixtures.ts';
import { seams } from './seams.ts';

/** What conformance suites need and nobody else should have; mounted by the conformance switch alone. */
export const conformance: Capability<'conformance', object> = {
  name: 'conformance',
  advertise: () => ({ fixtures: FIXTURES.map(({ id }) => id) }),
  nodes: () => CONFORMANCE_NODES,
  service: () => ({}),
  routes: seams,
  prepare: async (host: Host) => {
    const workflows = workflowService(host);
    for (const fixture of FIXTURES) {
      const outcome = await workflows.registerShared(fixture);
      if (isRefusal(outcome)) throw new Error(`fixture ${fixture.id}: ${outcome.message}`);
    }
  },
};
