import { byId, complain, element, fetchJson, prettyJson, ROOT } from './dom.js';
import { createLines, curl } from './lines.js';
import { exampleRun, setUpTryIt } from './try-it.js';

const lines = createLines(ROOT);

showSteps();
followFields();
setUpTryIt(lines);
showDiscovery().catch((error) => complain('families', error));

function showSteps() {
  const steps = [
    ['Start a run', { method: 'POST', path: () => '/v1/runs', body: exampleRun }],
    ['Follow it', { path: (runId) => `/v1/runs/${runId}/events`, accept: 'text/event-stream', isStream: true }],
    ['Read what came of it', { path: (runId) => `/v1/runs/${runId}` }],
  ];
  byId('steps').replaceChildren(
    ...steps.map(([title, { path, body, ...request }]) =>
      element(
        'li',
        {},
        element('h4', {}, title),
        lines.block(title, (filled) => curl(filled, { ...request, path: path(filled.runId), body: body?.() })),
      ),
    ),
  );
}

/** The keys that are valid in a request header. */
const KEY = /^[\x21-\x7e]+$/;

function followFields() {
  byId('key').addEventListener('input', ({ target }) => {
    const key = target.value.trim();
    const isUsable = KEY.test(key);
    lines.fill({ key: isUsable ? key : '' });
    byId('start').disabled = !isUsable;
    byId('status').textContent = isUsable ? 'Ready.' : key === '' ? 'Paste a key to begin.' : 'This is not a key.';
    delete byId('status').dataset.state;
  });
  for (const id of ['subject', 'plan']) byId(id).addEventListener('input', () => lines.fill({}));
}

async function showDiscovery() {
  byId('discovery-line').replaceChildren(
    lines.block('discovery', (filled) => curl(filled, { path: '/.well-known/openwop', isPublic: true })),
  );
  const discovery = await fetchJson('/.well-known/openwop');
  byId('families').replaceChildren(...Object.entries(discovery).map(([name, value]) => family(name, value)));
  const { implementation, protocolVersion } = discovery;
  const facts = [
    ['Health', await health()],
    ['Address', location.host],
    ['Version', implementation.version],
    ['Protocol', `OpenWOP ${protocolVersion}`],
  ];
  byId('facts').replaceChildren(
    ...facts.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value))),
  );
}

function family(name, value) {
  return element('div', { class: 'family' }, element('h3', {}, name), element('pre', {}, prettyJson(value)));
}

/** Whether the host takes work, as its probe says. */
async function health() {
  const { ok } = await fetch(`${ROOT}/readyz`);
  return ok ? 'ready' : 'not ready, see /readyz';
}
