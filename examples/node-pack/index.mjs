import { areaOf } from './area.mjs';

/** The nodes of the pack, by type. Each gets a context and returns an outcome. */
export const nodes = {
  'vendor.example.geometry.area': async ({ inputs }) => {
    if (inputs.width < 0)
      return { status: 'failure', error: { code: 'negative', message: 'A width is not negative.' } };
    return { status: 'success', outputs: { area: areaOf(inputs) } };
  },
  'vendor.example.geometry.measure': async ({ suspend, effect, log }) => {
    const length = await suspend({ kind: 'clarification', prompt: 'How long is it?' });
    // What touches the world is an effect here, too: it happens once.
    const process = await effect('write down', () => globalThis.process.pid);
    log.info('measured', { length });
    return { status: 'success', outputs: { length, process } };
  },
};
