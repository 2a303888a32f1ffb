import type { ArtifactKind } from '../../../../protocol/learning/proposals.ts';
import type { Store } from '../../../../store/store.ts';
import type { Packs } from '../../../ai/packs/door.ts';
import type { Prompts } from '../../../ai/prompts/door.ts';
import type { Schedules } from '../../../starting/schedules/door.ts';
import { automationInstaller } from './automation.ts';
import type { Installer } from './installer.ts';
import { packInstaller } from './pack.ts';
import { promptInstaller } from './prompt-template.ts';

export interface Places {
  readonly prompts: Prompts;
  readonly packs: Packs;
  readonly schedules: Schedules;
}

export type Installers = Readonly<Record<ArtifactKind, Installer>>;

/** Where each kind of artifact goes. */
export function installersOf({ prompts, packs, schedules }: Places, store: Store): Installers {
  return {
    'prompt-template': promptInstaller(prompts),
    'workflow-chain-pack': packInstaller(packs, 'chains'),
    'agent-pack': packInstaller(packs, 'agents'),
    automation: automationInstaller(schedules, store),
  };
}
