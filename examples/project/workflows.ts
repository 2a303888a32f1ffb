import { defineWorkflow, Type, when } from 'capstan/build';
import { fetchInvoice, remind } from './nodes.ts';

/** Reminds a customer of an invoice after a day; somebody looks at large ones first. */
export const remindOfInvoice = defineWorkflow(
  { id: 'remind-of-invoice', name: 'Remind of an invoice', variables: { number: Type.String({ default: '2026-1' }) } },
  ({ node, gate, variables }) => {
    const invoice = node('invoice', fetchInvoice, { inputs: { number: variables.number }, retry: { maxRetries: 3 } });
    const day = node('day', 'core.delay', { config: { delayMs: 86_400_000 }, after: invoice });
    const inputs = { customer: invoice.output('customer'), total: invoice.output('total') };
    node('reminder', remind, { inputs, after: when(day, 'nodes.invoice.total <= 1000.0') });
    const approval = gate('approval', {
      title: 'Remind of a large invoice?',
      inputs,
      after: when(day, 'nodes.invoice.total > 1000.0'),
    });
    node('large-reminder', remind, { inputs, after: approval });
  },
);
