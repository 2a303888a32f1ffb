import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ModelSettings } from '../../src/capabilities/ai/models/settings.ts';
import { unique } from './definitions.ts';

/** A provider with a model called small, which answers as the script says that is put into the folder. */
export function scriptedModel(
  folder: string,
  script: object,
  { provider = 'play', prices = {} }: Partial<Pick<ModelSettings, 'provider' | 'prices'>> = {},
): ModelSettings {
  const path = join(folder, `${unique('script')}.json`);
  writeFileSync(path, JSON.stringify(script));
  return { provider, kind: 'scripted', script: path, models: ['small'], prices, timeoutMs: 5_000 };
}
