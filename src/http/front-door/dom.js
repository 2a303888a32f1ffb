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

/** Fills a `<details>` when it is opened for the first time, because most never are. */
export function lazily(details, fill) {
  details.addEventListener('toggle', () => details.append(...fill()), { once: true });
  return details;
}

/** Announces a text to screen readers. */
export function announce(text) {
  byId('announcer').textContent = text;
}

/** The address of the host, which a proxy may publish below a path. */
export const ROOT = new URL('../..', location.href).href.replace(/\/$/, '');

export async function fetchJson(path) {
  const response = await fetch(ROOT + path, { headers: { accept: 'application/json' } });
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
  return response.json();
}

/** Says in the place of an element why it could not be filled. */
export function complain(id, error) {
  byId(id).replaceChildren(
    element('p', { class: 'notice', role: 'alert' }, `This could not be loaded: ${error.message}.`),
  );
}

const TOKENS = /("(?:\\.|[^"\\])*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** JSON as text with syntax colours. */
export function prettyJson(value) {
  const text = layOut(value);
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(TOKENS)) {
    parts.push(text.slice(end, match.index), token(match));
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)];
}

const LINE_CHARACTERS_MAX = 40;

/** Values that fit on one line stay on it. */
function layOut(value, indent = '', label = '') {
  const flat = JSON.stringify(value, null, 1).replace(/\n\s*/g, ' ');
  const width = indent.length + label.length + flat.length;
  if (typeof value !== 'object' || value === null || width <= LINE_CHARACTERS_MAX) return label + flat;
  const inner = `${indent}  `;
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const members = Object.entries(value).map(([name, member]) => {
    return inner + layOut(member, inner, Array.isArray(value) ? '' : `${JSON.stringify(name)}: `);
  });
  return `${label}${open}\n${members.join(',\n')}\n${indent}${close}`;
}

function token([whole, string, colon]) {
  if (colon) return element('span', { class: 'json-key' }, whole);
  return element('span', { class: string ? 'json-text' : 'json-value' }, whole);
}
