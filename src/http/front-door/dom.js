/**
 * An element with attributes and children. Strings become text, never markup: what comes from the API or from a person
 * cannot turn into something that the browser runs.
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') made.addEventListener(name, value);
    else if (value !== undefined && value !== false) made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children.flat().filter((child) => child !== undefined && child !== ''));
  return made;
}

export const byId = (id) => document.getElementById(id);

/** Fills a `<details>` when it is opened for the first time: most never are. */
export function lazily(details, fill) {
  details.addEventListener('toggle', () => details.append(...fill()), { once: true });
  return details;
}

/** Says something to those who cannot see it. */
export function announce(text) {
  byId('announcer').textContent = text;
}

export async function fetchJson(path) {
  const response = await fetch(path, { headers: { accept: 'application/json' } });
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
  return response.json();
}

const TOKENS = /("(?:\\.|[^"\\])*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** JSON as text, its parts told apart by colour. */
export function prettyJson(value) {
  const text = JSON.stringify(value, null, 2);
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(TOKENS)) {
    parts.push(text.slice(end, match.index), token(match));
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)];
}

function token([whole, string, colon]) {
  if (colon) return element('span', { class: 'json-key' }, whole);
  return element('span', { class: string ? 'json-text' : 'json-value' }, whole);
}
