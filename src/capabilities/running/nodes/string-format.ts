import { render } from '../../../engine/expressions/template.ts';
import { isObject } from '../../../protocol/format/json.ts';
import { invalid, type NodeType } from '../../../runtime/node-type.ts';

/** Fills a template with values of the input `context`, or of all input ports if there is none. */
export const stringFormat: NodeType = {
  typeId: 'core.openwop.data.string-format',
  description: 'Renders a text template.',
  requiredInputs: ['template'],
  outputs: () => ['text'],
  role: 'pure',
  run: ({ inputs, budget }) => {
    const { template, context } = inputs;
    if (typeof template !== 'string') return invalid('The input `template` must be a string.');
    return { done: { outputs: { text: render(template, isObject(context) ? context : inputs, budget) } } };
  },
};
