import { valueAt } from '../../protocol/format/json.ts';

const TOKEN = /\{\{\s*([A-Za-z_][A-Za-z0-9_.-]{0,255})\s*\}\}/g;

/**
 * Replaces `{{ path }}` tokens by values. Paths are looked up, never evaluated; a missing value renders as empty text.
 */
export function render(template: string, values: unknown): string {
  return template.replace(TOKEN, (_token, path: string) => toText(valueAt(values, path)));
}

function toText(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
