import type { ModelProvider } from '../../../runtime/effects/model.ts';
import type { SeamDrivers } from '../../../runtime/effects/seams.ts';
import { door, extensionPoint } from '../../capability.ts';

/** The model providers of this host. */
export interface Models {
  /** Every provider that can be asked; complete once the host is prepared. */
  readonly providers: readonly ModelProvider[];
  /** Asks a provider on behalf of a node, within the budget of its run. */
  readonly seam: SeamDrivers['model'];
}

/** The door to models. */
export const Models = door<Models>()('models');

/** Providers besides those that the operator has configured. */
export const ModelProviders = extensionPoint<ModelProvider>('modelProviders');

export { CallPromptConfig, callPrompt } from './nodes.ts';
export { askForJson } from './structured.ts';
