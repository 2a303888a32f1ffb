import { defineNode, defineProject, defineWorkflow, Type } from 'capstan/build';

/** The same as `core.openwop.data.string-format` with the same template. */
const greet = defineNode({
  typeId: 'bench.greet',
  description: 'Greets somebody.',
  safety: 'pure',
  inputs: Type.Object({ name: Type.String() }),
  outputs: Type.Object({ text: Type.String() }),
  run: ({ inputs }) => ({ text: `Hello ${inputs.name}` }),
});

/** One durable step, as the peers have it: it is recorded before and after. */
const step = defineNode({
  typeId: 'bench.step',
  description: 'Performs one effect that does nothing.',
  safety: 'write',
  inputs: Type.Object({}),
  outputs: Type.Object({ done: Type.String() }),
  run: async ({ effect }) => ({ done: await effect('noop', async () => 'done') }),
});

const oneStep = defineWorkflow({ id: 'bench-step' }, ({ node }) => {
  node('step', step, { inputs: {} });
});

export default defineProject({ nodes: [greet, step], workflows: [oneStep] });
