import { defineNode, defineProject, Type } from 'capstan/build';

/** The same as `core.openwop.data.string-format` with the same template. */
const greet = defineNode({
  typeId: 'bench.greet',
  description: 'Greets somebody.',
  safety: 'pure',
  inputs: Type.Object({ name: Type.String() }),
  outputs: Type.Object({ text: Type.String() }),
  run: ({ inputs }) => ({ text: `Hello ${inputs.name}` }),
});

export default defineProject({ nodes: [greet] });
