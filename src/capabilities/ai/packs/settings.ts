import { defineSettings } from '../../settings.ts';

/** The folder that serves as a registry of packs. */
export const packSettings = defineSettings({
  variables: { packs: { variable: 'CAPSTAN_PACKS', meaning: 'folder that serves as a pack registry' } },
  read: (read) => ({ packFolder: read.text('packs') }),
});
