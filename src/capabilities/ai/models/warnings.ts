import { nearest } from '../../../protocol/format/nearest.ts';
import { nodeWarnings, type WorkflowCheck } from '../../running/workflows/door.ts';
import type { Models } from './door.ts';

/** Providers and models that nodes name and this host does not have; a run may name others. */
export function unknownModels(models: Pick<Models, 'providers'>): WorkflowCheck {
  return (_user, definition) =>
    nodeWarnings(definition, ({ typeId, config: { provider, model } }) => {
      if (!/^core\.(ai|agents|orchestrator)\.|^vendor\.capstan\.judge$/.test(typeId)) return [];
      const { providers } = models;
      if (providers.length === 0) return [{ path: '.typeId', message: `This host has no model provider. ${HOW}` }];
      const known = providers.map(({ id }) => id);
      if (typeof provider !== 'string') return [];
      const found = providers.find(({ id }) => id === provider);
      if (!found) return [{ path: '.config.provider', message: unknown('provider', provider, known) }];
      if (typeof model !== 'string' || found.models.includes(model)) return [];
      return [{ path: '.config.model', message: unknown('model', model, found.models) }];
    });
}

const HOW = 'Name one in CAPSTAN_MODELS.';

function unknown(what: string, name: string, known: readonly string[]): string {
  const meant = nearest(name, known) ?? known.slice(0, 5).join(', ');
  return `This host has no ${what} ${JSON.stringify(name)}. It has ${meant}.`;
}
