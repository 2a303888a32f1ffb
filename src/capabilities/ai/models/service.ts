import { readFile } from 'node:fs/promises';
import type { ModelProvider, PredictResponse } from '../../../runtime/effects/model.ts';
import { modelSeam } from '../../../runtime/effects/model-seam.ts';
import { scriptedProvider } from '../../../runtime/effects/scripted-model.ts';
import type { SeamDrivers } from '../../../runtime/effects/seams.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Host } from '../../capability.ts';
import { ModelProviders, type Models } from './door.ts';
import type { ModelSettings } from './settings.ts';

/** The providers that the operator has configured, opened at start, and those that capabilities contribute. */
export class ModelService implements Models {
  readonly #host: Pick<Host, 'runtime' | 'extensions'>;
  readonly #settings: readonly ModelSettings[];
  #configured: readonly ModelProvider[] = [];

  constructor(host: Pick<Host, 'runtime' | 'extensions'>, settings: readonly ModelSettings[]) {
    this.#host = host;
    this.#settings = settings;
  }

  get providers(): readonly ModelProvider[] {
    return [...this.#configured, ...this.#host.extensions(ModelProviders)];
  }

  readonly seam: SeamDrivers['model'] = modelSeam(() => this.providers);

  readonly predictResponse: PredictResponse = ({ provider, tenant, nodeId }) =>
    this.providers.find(({ id }) => id === provider)?.predictResponse?.(tenant, nodeId);

  /** Opens the configured providers; throws if a script cannot be read. */
  async prepare(): Promise<void> {
    const { runtime } = this.#host;
    this.#configured = await Promise.all(this.#settings.map((each) => openProvider(each, runtime)));
  }
}

async function openProvider(
  settings: ModelSettings,
  { egress, clock }: Pick<Runtime, 'egress' | 'clock'>,
): Promise<ModelProvider> {
  const { kind, script } = settings;
  if (kind === 'scripted') return scriptedProvider(settings, await readScript(script!));
  const { sdkProvider } = await import('../../../runtime/effects/sdk-model.ts');
  return sdkProvider({ ...settings, kind }, egress, clock);
}

async function readScript(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    throw new Error(`CAPSTAN_MODELS, script ${path}: ${(error as Error).message}`, { cause: error });
  }
}
