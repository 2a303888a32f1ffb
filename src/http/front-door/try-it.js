import { byId, element, ROOT } from './dom.js';

const RECONNECTS_MAX = 5;
const RECONNECT_MS = 500;
const ENDINGS = { 'run.completed': 'completed', 'run.failed': 'failed', 'run.cancelled': 'cancelled' };

/** Starts the example with the values of the form and shows its events as they come. */
export function setUpTryIt(lines) {
  const form = byId('try');
  let watching = new AbortController();

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    watching.abort();
    watching = new AbortController();
    const { signal } = watching;
    clear();
    say('Starting …', 'running');
    try {
      await runAndWatch(lines, signal);
    } catch (error) {
      if (!signal.aborted) say(error.message, 'failed');
    }
  });
}

/** The request that the form describes; the terminal panel shows the same request as a command. */
export function exampleRun() {
  return { workflowId: 'support-triage', inputs: { subject: byId('subject').value, plan: byId('plan').value } };
}

async function runAndWatch(lines, signal) {
  const { key } = lines.filled;
  const { runId } = await startRun(key, signal);
  lines.fill({ runId });
  say(`Running ${runId}`, 'running');
  let startedAt;
  for await (const event of follow(runId, key, signal)) {
    startedAt ??= Date.parse(event.timestamp);
    show(event, Date.parse(event.timestamp) - startedAt);
    if (ENDINGS[event.type]) finish(event, Date.parse(event.timestamp) - startedAt);
  }
}

async function startRun(key, signal) {
  const response = await fetch(`${ROOT}/v1/runs`, {
    method: 'POST',
    headers: { ...credential(key), 'content-type': 'application/json' },
    body: JSON.stringify(exampleRun()),
    signal,
  }).catch(unreachable);
  return answerOf(response);
}

/** The events of a run until its end. A broken connection is resumed after the last event. */
async function* follow(runId, key, signal) {
  let last;
  for (let tries = 0; tries <= RECONNECTS_MAX; tries++) {
    if (tries > 0) await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS * tries));
    try {
      for await (const event of streamOf(runId, key, last, signal)) {
        last = event.sequence;
        tries = 0;
        yield event;
        if (ENDINGS[event.type]) return;
      }
    } catch (error) {
      if (signal.aborted || error instanceof Refused) throw error;
    }
  }
  throw new Error('The stream broke off.');
}

async function* streamOf(runId, key, last, signal) {
  const response = await fetch(`${ROOT}/v1/runs/${encodeURIComponent(runId)}/events`, {
    headers: {
      ...credential(key),
      accept: 'text/event-stream',
      ...(last === undefined ? {} : { 'last-event-id': String(last) }),
    },
    signal,
  });
  if (!response.ok) await answerOf(response);
  for await (const frame of framesOf(response.body.pipeThrough(new TextDecoderStream()).getReader())) {
    const data = frame.split('\n').filter((line) => line.startsWith('data:'));
    if (data.length > 0) yield JSON.parse(data.map((line) => line.slice(5)).join('\n'));
  }
}

async function* framesOf(reader) {
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const frames = (rest + value).split('\n\n');
    rest = frames.pop();
    yield* frames;
  }
}

/** The host refused the request, so a retry would not help. */
class Refused extends Error {}

async function answerOf(response) {
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  throw new Refused(body.message ?? `The host answered ${response.status}.`);
}

function unreachable() {
  throw new Error('The host cannot be reached.');
}

const credential = (key) => ({ authorization: `Bearer ${key}` });

function clear() {
  byId('log').replaceChildren();
  byId('outcome').hidden = true;
}

function say(text, state) {
  const status = byId('status');
  status.textContent = text;
  status.dataset.state = state;
}

function show({ type, nodeId, payload }, ms) {
  const log = byId('log');
  log.append(
    element(
      'li',
      { 'data-kind': type.split('.').at(-1) },
      element('span', { class: 'at' }, `+${ms} ms`),
      element('span', { class: 'what' }, type),
      element('span', { class: 'where' }, nodeId ?? ''),
      element('span', { class: 'said' }, gist(payload)),
    ),
  );
  log.scrollTop = log.scrollHeight;
}

/** The most relevant detail of an event. */
function gist({ outputs, reason, error, next, artifactType }) {
  if (error) return error.message;
  if (reason) return reason.replaceAll('_', ' ');
  if (artifactType) return artifactType;
  return outputs || next ? JSON.stringify(outputs ?? next) : '';
}

function finish({ type, payload }, ms) {
  const ending = ENDINGS[type];
  say(ending === 'failed' ? payload.error.message : `The run ${ending} after ${ms} ms.`, ending);
  const fields = Object.values(payload.outputs ?? {}).flatMap((outputs) => Object.entries(outputs));
  if (fields.length === 0) return;
  const { brief = [], long = [] } = Object.groupBy(fields, ([, value]) => lengthOf(value));
  byId('outcome-fields').replaceChildren(fieldList('brief', brief), fieldList('long', long));
  byId('outcome').hidden = false;
}

const BRIEF_CHARACTERS_MAX = 40;

const textOf = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
const lengthOf = (value) => (textOf(value).length > BRIEF_CHARACTERS_MAX ? 'long' : 'brief');

function fieldList(kind, fields) {
  const rows = fields.map(([name, value]) =>
    element('div', {}, element('dt', {}, name), element('dd', {}, textOf(value))),
  );
  return element('dl', { class: kind }, rows);
}
