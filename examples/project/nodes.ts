import { readFile } from 'node:fs/promises';
import { defineNode, fatal, Type } from 'capstan/build';

interface Invoice {
  readonly customer: string;
  readonly total: number;
}

/** Replace the file by your own service: what stays is that it is asked inside an effect. */
export const fetchInvoice = defineNode({
  typeId: 'acme.fetchInvoice',
  description: 'Looks up an invoice by its number.',
  safety: 'read',
  inputs: Type.Object({ number: Type.String() }),
  outputs: Type.Object({ customer: Type.String(), total: Type.Number() }),
  run: async ({ inputs, effect }) => {
    const invoice = await effect('look up', async () => {
      const text = await readFile(new URL('invoices.json', import.meta.url), 'utf8');
      const invoices = JSON.parse(text) as Record<string, Invoice>;
      return invoices[inputs.number] ?? null;
    });
    if (invoice === null) throw fatal('no_such_invoice', `There is no invoice ${inputs.number}.`);
    return invoice;
  },
});

export const remind = defineNode({
  typeId: 'acme.remind',
  description: 'Writes a reminder to a customer.',
  safety: 'pure',
  inputs: Type.Object({ customer: Type.String(), total: Type.Number() }),
  outputs: Type.Object({ text: Type.String() }),
  run: ({ inputs }) => ({ text: `Dear ${inputs.customer}, ${inputs.total} EUR are due.` }),
});
