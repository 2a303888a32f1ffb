import { announce, element } from './dom.js';

/**
 * Command lines that follow what a person types. What they typed, the key included, is held by this closure and
 * nowhere else.
 */
export function createLines(origin) {
  const filled = { origin, key: '', runId: 'RUN_ID' };
  const writers = [];

  return {
    filled,
    /** A line that can be copied; `write` makes its text from the filled-in values. */
    block(label, write) {
      const code = element('code');
      const update = () => code.replaceChildren(...colour(write(filled)));
      writers.push(update);
      update();
      return element('div', { class: 'line' }, element('pre', {}, code), copyButton(label, code));
    },
    fill(changes) {
      Object.assign(filled, changes);
      for (const update of writers) update();
    },
  };
}

/** A request as a curl command. Without a key the command reads it from the environment. */
export function curl({ origin, key }, { method = 'GET', path, body, accept, isPublic = false, isStream = false }) {
  const parts = [
    `curl${isStream ? ' -N' : ''}${method === 'GET' ? '' : ` -X ${method}`} ${quoted(origin + path)}`,
    isPublic
      ? ''
      : `-H ${key === '' ? '"Authorization: Bearer $CAPSTAN_KEY"' : quoted(`Authorization: Bearer ${key}`)}`,
    accept ? `-H ${quoted(`Accept: ${accept}`)}` : '',
    body === undefined ? '' : "-H 'Content-Type: application/json'",
    body === undefined ? '' : `-d ${quoted(typeof body === 'string' ? body : JSON.stringify(body))}`,
  ];
  return parts.filter((part) => part !== '').join(' \\\n  ');
}

/** Quotes a text as one word of a POSIX shell. */
function quoted(text) {
  return /^[\w.:/@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

const WORDS = /('(?:[^']|'\\'')*'|"[^"]*")|(?<=^|\s)(-\w+|curl)(?=\s)/g;

function colour(text) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(WORDS)) {
    const kind = match[1] ? 'line-text' : 'line-word';
    parts.push(text.slice(end, match.index), element('span', { class: kind }, match[0]));
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)];
}

const COPIED_MS = 1_600;

function copyButton(label, code) {
  const button = element('button', { type: 'button', class: 'copy', 'aria-label': `Copy: ${label}` }, 'Copy');
  button.addEventListener('click', async () => {
    const isCopied = await copy(code);
    button.textContent = isCopied ? 'Copied' : 'Selected';
    announce(isCopied ? 'Copied.' : 'Selected; copy it with the keyboard.');
    setTimeout(() => button.replaceChildren('Copy'), COPIED_MS);
  });
  return button;
}

/** Browsers allow clipboard access on secure origins only; elsewhere the text is selected for copying. */
async function copy(code) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(code);
    return false;
  }
}
