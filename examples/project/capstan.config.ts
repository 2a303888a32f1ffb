import { defineProject } from 'capstan/build';
import { fetchInvoice, remind } from './nodes.ts';
import { remindOfInvoice } from './workflows.ts';

export default defineProject({
  nodes: [fetchInvoice, remind],
  workflows: [remindOfInvoice],
});
