import { valueAt } from '../../protocol/format/json.ts';
import type { OutputBudget } from '../limits/output-budget.ts';

const TOKEN = /\{\{\s*([A-Za-z_][A-Za-z0-9_.-]{0,255})\s*\}\}/g;

/**
 * Replaces `{{ path }}` tokens by values. Paths are looked up, never evaluated; a missing value renders as empty text.
 * A short template can repeat a long value many times, so each piece is taken from the budget first.
 */
export function render(template: string, values: unknown, budget: OutputBudget): string {
  budget.take(template.length);
  return template.replace(TOKEN, (_token, path: string) => toText(valueAt(values, path), budget));
}

function toText(value: unknown, budget: OutputBudget): string {
  if (value === undefined || value === null) return '';
  budget.takeJson(value);
  return typeof value === 'string' ? value : JSON.stringify(value);
}
