import { byId, element, lazily } from './dom.js';
import { curl } from './lines.js';
import { createSchemaView } from './schema-view.js';

/** Sub-resources of runs that are areas of their own. */
const PARTS = ['events', 'artifacts', 'annotations', 'interrupts'];

/** Shows every operation of an OpenAPI document, by area. */
export function showReference(api, lines) {
  const view = createSchemaView(api.components.schemas);
  const operations = operationsOf(api);
  const areas = Object.entries(Object.groupBy(operations, ({ path }) => areaOf(path))).sort(byRank);
  byId('operations').replaceChildren(
    ...areas.map(([area, members]) =>
      element(
        'section',
        { class: 'area', id: `area-${area}`, 'aria-labelledby': `area-${area}-title` },
        element('h3', { id: `area-${area}-title` }, titleOf(area)),
        members.map((operation) => card(operation, view, lines)),
      ),
    ),
  );
  byId('areas').replaceChildren(
    ...areas.map(([area, { length }]) =>
      element('li', {}, element('a', { href: `#area-${area}` }, titleOf(area), element('span', {}, String(length)))),
    ),
  );
  setUpFilter(operations);
}

/** The most used areas first, then the rest in the order of the document, then the documents themselves. */
const FIRST = ['runs', 'events', 'artifacts', 'workflows'];
const rankOf = (area) => (FIRST.includes(area) ? FIRST.indexOf(area) : area === 'documents' ? 99 : FIRST.length);
const byRank = ([a], [b]) => rankOf(a) - rankOf(b);

function operationsOf({ paths }) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, path, method: method.toUpperCase() })),
  );
}

function areaOf(path) {
  if (!path.startsWith('/v1/') || path.endsWith('.json')) return 'documents';
  const names = path
    .split(/[/:]/)
    .filter((name) => /^[a-z]/.test(name) && !['v1', 'host', 'capstan', 'sample'].includes(name));
  return names.find((name) => PARTS.includes(name)) ?? names[0];
}

const titleOf = (area) => area[0].toUpperCase() + area.slice(1);

function card(operation, view, lines) {
  const { operationId, method, path, summary } = operation;
  const details = element(
    'details',
    { class: 'operation', id: operationId },
    element(
      'summary',
      {},
      element('span', { class: 'method', 'data-method': method }, method),
      element('code', { class: 'path' }, pathParts(path)),
      element('span', { class: 'about' }, summary),
      element('span', { class: 'scope' }, operation['x-scope'] ?? 'no credential'),
    ),
  );
  return lazily(details, () => [element('div', { class: 'inside' }, contents(operation, view, lines))]);
}

function pathParts(path) {
  return path
    .split(/(\{\w+\})/)
    .map((part) => (part.startsWith('{') ? element('span', { class: 'parameter' }, part) : part));
}

function contents(operation, view, lines) {
  const { operationId, parameters = [], requestBody } = operation;
  const request = requestBody?.content['application/json']?.schema;
  return [
    element(
      'p',
      { class: 'permalink' },
      'operation ',
      element('a', { class: 'mono', href: `#${operationId}`, 'aria-label': `Link to ${operationId}` }, operationId),
    ),
    lines.block(operationId, (filled) => curl(filled, requestOf(operation, request, filled, view))),
    parameters.length > 0 ? part('Parameters', view.inside(asObject(parameters))) : undefined,
    request ? part(requestBody.required ? 'Request' : 'Request, optional', shape(request, view)) : undefined,
    ...successes(operation).map(([status, reply]) => part(`Reply ${status}`, replyOf(reply, view))),
    refusals(operation).length > 0 ? part('Refusals', refusalList(operation, view)) : undefined,
  ];
}

function part(title, children) {
  return element('div', { class: 'part' }, element('h4', {}, title), children);
}

/** Parameters as the fields of an object, so that they are shown like other schemas. */
function asObject(parameters) {
  const fields = parameters.map(({ name, in: place, schema, description }) => {
    const about = [place, description ?? schema.description].filter(Boolean).join(': ');
    return [name, { ...schema, description: about }];
  });
  const required = parameters.filter((parameter) => parameter.required).map(({ name }) => name);
  return { properties: Object.fromEntries(fields), required };
}

function shape(schema, view) {
  return [element('p', { class: 'type' }, view.typeOf(schema)), ...view.inside(schema)];
}

function successes({ responses }) {
  return Object.entries(responses).filter(([status]) => Number(status) < 400);
}

function replyOf({ content = {} }, view) {
  const [[type = 'nothing', media] = []] = Object.entries(content);
  return type === 'application/json' ? shape(media.schema, view) : [element('p', { class: 'type' }, type)];
}

function refusals({ responses }) {
  return Object.entries(responses).filter(([status]) => Number(status) >= 400);
}

function refusalList(operation, view) {
  const rows = refusals(operation).map(([status, { description }]) =>
    element('div', {}, element('dt', {}, status), element('dd', {}, description)),
  );
  const envelope = { properties: { body: { $ref: '#/components/schemas/ErrorEnvelope' } } };
  return [element('dl', { class: 'refusals' }, rows), ...view.inside(envelope)];
}

/** The example request of an operation. */
function requestOf({ method, path, parameters = [], responses, requestBody, ...operation }, schema, { runId }, view) {
  const known = { runId };
  const isStream = Object.values(responses).some(({ content }) => content?.['text/event-stream']);
  const query = parameters.filter((parameter) => parameter.in === 'query' && parameter.required);
  return {
    method,
    path:
      path.replace(/\{(\w+)\}/g, (_token, name) => known[name] ?? placeholder(name)) +
      query.map(({ name }, index) => `${index === 0 ? '?' : '&'}${name}=${placeholder(name)}`).join(''),
    body: schema && bodyOf(operation.operationId, schema, requestBody, view),
    isPublic: operation.security?.length === 0,
    isStream,
    accept: isStream ? 'text/event-stream' : undefined,
  };
}

const BODIES = { createRun: { workflowId: 'support-triage', inputs: { subject: 'I cannot log in', plan: 'pro' } } };

/** An example body with the required fields only. */
function bodyOf(operationId, schema, { required }, view) {
  if (schema.$ref?.endsWith('/WorkflowDefinition')) return '@workflow.json';
  return BODIES[operationId] ?? (required ? view.sampleOf(schema, placeholder) : undefined);
}

/** `runId` as RUN_ID: a placeholder to be replaced. */
function placeholder(name) {
  return name.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
}

function setUpFilter(operations) {
  const filter = byId('filter');
  const apply = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = operations.filter((operation) => words.every((word) => textOf(operation).includes(word)));
    showOnly(new Set(found.map(({ operationId }) => operationId)));
    byId('filter-count').textContent = countOf(found.length, operations.length);
  };
  filter.addEventListener('input', apply);
  apply();
}

function textOf({ operationId, method, path, summary, 'x-scope': scope = '' }) {
  return `${operationId} ${method} ${path} ${summary} ${scope}`.toLowerCase();
}

function showOnly(found) {
  for (const operation of document.querySelectorAll('.operation')) operation.hidden = !found.has(operation.id);
  for (const area of document.querySelectorAll('.area')) area.hidden = !area.querySelector('.operation:not([hidden])');
}

function countOf(found, all) {
  if (found === 0) return 'Nothing matches.';
  return found === all ? `${all} operations` : `${found} of ${all} operations`;
}

/** Opens the operation that the URL fragment names. */
export function openLinked() {
  const target = byId(location.hash.slice(1));
  if (!target) return;
  if (target.matches('.operation, .area') && target.closest('[hidden]')) clearFilter();
  if (target.matches('.operation')) {
    target.open = true;
    target.querySelector('summary').focus({ preventScroll: true });
  }
  target.scrollIntoView();
}

function clearFilter() {
  byId('filter').value = '';
  byId('filter').dispatchEvent(new Event('input'));
}
