import type { Egress } from '../../../system/egress.ts';
import { withAllowEntry } from '../../egress-advice.ts';
import { nodeWarnings, type WorkflowCheck } from '../../running/workflows/door.ts';
import { httpFetch } from './nodes.ts';

/** URLs that the way out would refuse today; the operator may allow them later. */
export function refusedUrls(egress: Pick<Egress, 'problemWith'>): WorkflowCheck {
  return (_user, definition) =>
    nodeWarnings(definition, ({ typeId, config: { url } }) => {
      const problem = typeId === httpFetch.typeId ? egress.problemWith(String(url)) : undefined;
      return problem === undefined
        ? []
        : [
            {
              path: '.config.url',
              message: `This host would refuse it: the URL ${withAllowEntry(problem, String(url))}.`,
            },
          ];
    });
}
