import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { expectRefusal } from '../support/envelope.ts';
import { setGoal } from '../support/goals.ts';
import type { TestHost } from '../support/host.ts';
import { apply, drafted, template } from '../support/proposals.ts';
import { onEachStore } from '../support/stores.ts';
import { until } from '../support/until.ts';

/**
 * Goal: no request field is accepted and ignored. Method: every field that the served OpenAPI document has is in this
 * table, with the test that shows what it does or that it is refused. A field that is not here fails the first test,
 * and a test that is renamed or gone fails the second.
 */

/** The file of a test without its ending, and what its title says. */
type Proof = readonly [file: string, title: string];
type Fields = Readonly<Record<string, Proof>>;

const here = (title: string): Proof => ['request-fields', title];
const all = (names: string, proof: Proof): Fields => Object.fromEntries(names.split(' ').map((name) => [name, proof]));
const paged = (file: string, title: string): Fields => all('?limit ?cursor', [file, title]);

const PROMPT_CHOICE: Proof = [
  'prompt-runs',
  "by the run's wish before the node's, and by the workflow's where the node has none",
];
const DEFINITION = 'keeps everything that the protocol allows in a definition';
const WORKFLOW: Fields = {
  ...all('id name version nodes edges triggers variables', ['workflows', 'gives the definition back as it was']),
  ...all('$schema', ['typos', 'is filled in when it is stored']),
  // Facts for readers: kept as they are, without a meaning for the engine.
  ...all('description type slug scopeId groups acceptsInheritedArtifacts createdAt updatedAt', [
    'workflows',
    DEFINITION,
  ]),
  tenantId: ['workflows', DEFINITION],
  metadata: ['mcp-server', 'workflows as MCP tools'],
  settings: ['runs', 'stop a run that takes too long, and cut what is in flight'],
  ...all('status isActive', ['inactive-workflows', 'as %s starts no run: %j']),
  channels: ['runs', 'channel-ttl keeps the entry that is young enough'],
  configurableSchema: ['runs', 'have to fit the schema of the workflow'],
  defaults: PROMPT_CHOICE,
};
const SCHEDULE: Fields = {
  ...all('workflowId inputs', ['schedules', 'starts one run, in the name of who made it, with its inputs']),
  ...all('cron timezone runAt', ['schedules', 'with an id, its next time and whose runs it starts']),
  missed: ['schedules', 'are made up for by one run, or by none, as the schedule says'],
  enabled: ['schedules', 'by switching it off and on'],
};
const TEMPLATE: Fields = {
  ...all('templateId kind text name description variables tags meta', [
    'prompts',
    'as it was put in, with what the host says of it beside',
  ]),
  version: ['prompts', 'without ever giving the name of a version to something else'],
  modelHints: ['prompts', 'of one kind, source, tag or class of models'],
  workspaceId: ['prompts', 'and takes nobody for a member who only says so'],
};
const GOAL_EDIT: Fields = {
  objective: ['goals', 'in what it is about, and every wording is kept'],
  ...all('completion continuation', ['goals', 'in what it is about, and every wording is kept']),
};
const PAGES = all('?limit ?cursor', here('limits a page, and leads on to the next: %s'));
const MEMBER = ['prompts', 'and takes nobody for a member who only says so'] as const;

const FIELDS: Readonly<Record<string, Fields>> = {
  beginSignIn: all('?next', ['sign-in', 'leads there and back, and ends with a session of that person']),
  finishSignIn: {
    ...all('?code ?state', ['sign-in', 'takes no answer that this browser did not ask for, and none twice']),
    '?error': ['sign-in', 'takes no answer that this browser did not ask for, and none twice'],
  },
  verifyAudit: all('?fromSeq ?toSeq', ['audit', 'to the end where that is not said, and past it']),
  listAudit: {
    ...all('?actor ?action ?since ?until', ['audit', 'by actor, action and time']),
    ...paged('audit', 'newest first, page by page, none twice and none left out'),
  },
  exportAudit: all('?fromSeq ?toSeq', ['audit', 'in parts, each of which can be checked by itself']),
  listPrincipals: all('?principal', ['keys', 'principals have the names of their keys, for whoever may read runs']),
  listApiKeys: paged('keys', 'the list has pages, newest first'),
  createApiKey: {
    name: ['keys', 'a key is made, used, found without itself, and revoked'],
    ...all('role scopes', ['keys', 'a key has its role, or the scopes it was given, or nothing']),
    workspace: ['keys', 'whoever has the whole tenant makes keys of any workspace'],
    principal: ['keys', 'a principal may be chosen, and is opaque'],
    pool: ['workers', 'is served with keys that can do nothing else, of one pool alone'],
    person: ['separation', 'counts two keys of one person as one vote in every quorum'],
    expiresAt: ['keys', 'an end is kept, and said'],
  },
  rotateApiKey: { graceSeconds: ['keys', 'leaves the old key the grace that is advertised, unless it is revoked'] },
  createAnnotation: {
    target: ['feedback', 'may be about one event, one node, or both'],
    ...all('signal note', ['feedback', 'may be about one event, one node, or both']),
  },
  summarizeFeedback: {
    '?workflowId': ['feedback-summary', 'is empty for a workflow that nobody knows'],
    ...all('?since ?until', ['feedback-summary', 'counts runs from a moment on, and up to another']),
    '?bucket': ['feedback-summary', 'adds up over each %s'],
  },
  summarizeCosts: {
    '?workflowId': ['operators', 'has no sum where a price is not known'],
    ...all('?since ?until ?bucket', ['operators', 'adds costs up over time, by workflow and by model']),
  },
  putWorkerType: {
    ...all('description pool', ['workers', 'is listed while it is declared']),
    ...all('config inputs outputs', ['workers', 'refuses what does not fit its schemas']),
    timeoutMs: ['workers', 'fails when no worker has a result in time'],
    tool: ['workers', 'is called by agents as a tool'],
  },
  claimWorkerTasks: {
    types: ['workers', 'is handed over with its config and inputs'],
    ...all('max worker', ['workers', 'is leased by no more workers than asked']),
    waitSeconds: ['workers', 'is not known to other tenants, and neither are its attempts'],
    leaseSeconds: ['workers', 'goes to another worker when the lease is over'],
  },
  heartbeatWorkerTask: {
    epoch: ['workers', 'goes to another worker when the lease is over'],
    progress: ['workers', 'is handed over with its config and inputs'],
  },
  claimWorkerEffect: all('epoch name', ['workers', 'goes to another worker when the lease is over']),
  recordWorkerEffect: all('epoch name result', ['workers', 'goes to another worker when the lease is over']),
  completeWorkerTask: {
    epoch: ['workers', 'goes to another worker when the lease is over'],
    ...all('outputs logs', ['workers', 'is handed over with its config and inputs']),
  },
  failWorkerTask: {
    epoch: ['workers', 'goes to another worker when the lease is over'],
    ...all('error logs', ['workers', 'keeps its effects from one attempt to the next']),
  },
  suspendWorkerTask: all('epoch waitsFor', [
    'workers',
    'is given back while it waits, and handed over with what has come',
  ]),
  callWorkflow: {
    ...all('workflowId inputs tags metadata', [
      'calls',
      'answers with what its last nodes gave, and leaves a run as any other',
    ]),
    configurable: ['calls', 'takes options of the run, and refuses what a run would refuse'],
    waitSeconds: ['calls', 'waits no longer than it was asked to'],
  },
  tryNode: all('typeId config inputs', ['trials', 'runs with its config and inputs, and leaves no workflow behind']),
  listWorkflows: paged('workflows', 'lists pages without showing a workflow twice or missing one'),
  registerWorkflow: WORKFLOW,
  replaceWorkflow: WORKFLOW,
  validateWorkflow: WORKFLOW,
  listWorkflowVersions: paged('workflow-versions', 'are listed newest first, page by page'),
  listPromptTemplates: {
    ...all('?kind ?tag ?modelClass ?source', ['prompts', 'of one kind, source, tag or class of models']),
    '?workspaceId': MEMBER,
    ...paged('prompts', 'page by page, each once, in its latest version'),
  },
  createPromptTemplate: TEMPLATE,
  getPromptTemplate: {
    '?version': ['prompts', 'in the version that is asked for, which never changes'],
    '?libraryId': ['prompts', 'that is there, and no other'],
    '?workspaceId': MEMBER,
  },
  updatePromptTemplate: { ...TEMPLATE, '?workspaceId': MEMBER },
  deletePromptTemplate: { '?workspaceId': MEMBER },
  renderPromptTemplate: {
    ref: ['prompts', 'by its latest version or another, with values that the reference brings'],
    variables: ['prompts', 'the same each time for the same, and something else for anything else'],
    contentTrust: ['prompts', 'with no way out for what cannot be believed'],
    workspaceId: MEMBER,
  },
  listPacks: paged('packs', 'are listed page by page, what was changed last first, each once'),
  installPack: {
    ...all('manifest file files', ['packs', 'from what a request brings, and shown with where they come from']),
    ...all('registry name version', ['packs', 'that may be asked, and that is named with what goes with it']),
    ...all('integrity signature', ['packs', 'to the letter, signed, and checked']),
  },
  getPack: { '?version': ['packs', 'with their versions and their manifest'] },
  uninstallPack: { '?version': ['packs', 'any of which can be taken away from under the one in use'] },
  expandWorkflowChain: {
    ...all('packName chainId parameters version', ['packs', 'as the chain and its parameters say']),
    expansionId: ['packs', 'the same way for the same id'],
  },
  searchPublishedPacks: { '?q': ['packs', 'are shown to everybody'] },
  listTools: {
    '?source': ['tools', 'can be looked at by source, and in two views'],
    '?view': ['tools', 'can be looked at by source, and in two views'],
  },
  createRun: {
    workflowId: ['runs', 'knows no workflow that is not there, and does not repeat its id'],
    inputs: ['runs', 'takes variables from defaults, then from inputs'],
    tenantId: here('of another tenant is refused'),
    scopeId: ['runs', 'have one live run; a second one is refused with the first'],
    callbackUrl: ['callbacks', 'tells how the run ended, signed with the secret of the reply'],
    ...all('configurable configurable.recursionLimit', [
      'runs',
      'stop a run before the node that would be one too many',
    ]),
    'configurable.runTimeoutMs': ['runs', 'stop a run that takes too long, and cut what is in flight'],
    'configurable.maxLoopIterations': here('bounds the turns of an orchestration'),
    ...all('configurable.model configurable.temperature configurable.maxTokens', [
      'models',
      'are asked as the run says, whatever the workflow does',
    ]),
    ...all('configurable.ai configurable.ai.provider configurable.ai.model', [
      'models',
      'are asked as the run says, whatever the workflow does',
    ]),
    'configurable.ai.credentialRef': ['models', 'refuse a run with %j'],
    'configurable.escalationThreshold': ['agent-runs', 'go on by themselves where the run asks for less'],
    'configurable.reasoningVerbosity': here('says how much of what an agent reasons is told'),
    'configurable.promptOverrides': PROMPT_CHOICE,
    ...all('configurable.mockProvider configurable.mockProvider.id configurable.mockProvider.config', [
      'runs',
      'stream-text says what it was told to say, in order',
    ]),
    ...all('configurable.budget configurable.budget.maxTokens configurable.budget.thresholdPercent', [
      'models',
      'are asked as long as there are tokens, and not once more',
    ]),
    ...all('configurable.budget.modelAllow configurable.budget.modelDeny configurable.budget.maxCostUsd', [
      'models',
      'are not asked for %s',
    ]),
    'configurable.budget.maxToolCalls': ['agent-runs', 'call as many tools as the run may, and not one more'],
    'configurable.budget.maxRetries': ['models', "kind: 'budget-retries'"],
    'configurable.budget.onExhaustion': ['models', 'refuse a run with %j'],
    tags: ['runs', 'never refuse a tag for its format, and show it on the first event'],
    metadata: ['runs', 'keep metadata as it was sent'],
    residency: ['runs', 'refuses a residency that it cannot keep'],
    mode: ['runs', 'refuses evaluation runs as a capability that it does not have'],
    ...all('evalSuiteRef agentId', here('of an evaluation is refused in a run that is none')),
  },
  cancelRun: { reason: ['runs', 'ends a running run, and says who and why'] },
  bulkCancelRuns: all('runIds reason', ['runs', 'answers for each, in the order asked, whatever came of it']),
  pauseRun: {
    reason: ['runs', 'draining is the default: the node ends, then the run is paused'],
    drainPolicy: ['runs', 'immediate cuts the attempt without an end, and resuming begins a fresh one'],
  },
  resumeRun: { reason: ['runs', 'draining is the default: the node ends, then the run is paused'] },
  listRuns: {
    ...all('?status ?workflowId ?tag', [
      'runs',
      'filters by status, workflow, tag and time, and by all of them at once',
    ]),
    '?origin': ['runs', 'filters by how runs came to be, and says which they come from'],
    '?preview': ['proposal-previews', 'shows what a better prompt would have done, and touches nothing'],
    '?flagged': ['feedback', 'let runs be found by whether somebody flagged them'],
    ...all('?since ?until', ['runs', 'filters by time: since is included, until is not']),
    ...paged('runs', 'pages through many runs without showing one twice or missing one'),
  },
  forkRun: {
    ...all('mode fromSeq', ['replay', 'begin anywhere: two replays from one place are equal to their source']),
    runOptionsOverlay: ['replay', 'run again with other inputs, options, tags and metadata where a branch says so'],
  },
  resolveInterruptByRun: { resumeValue: ['interrupts', 'an answer fits the schema that the interrupt asks for'] },
  resolveInterruptByToken: { resumeValue: ['interrupt-tokens', 'answers without any other credential'] },
  streamRunEvents: {
    '?streamMode': ['events', 'in mode updates show transitions and nothing else'],
    '?bufferMs': ['events', 'gather events into batches that carry the highest sequence'],
  },
  pollRunEvents: {
    ...all('?lastSequence ?since', here('says after which event a poll begins, under both of its names')),
    '?timeout': ['events', 'waits for something new, and answers as soon as it is there'],
  },
  registerWebhook: {
    url: ['webhooks', 'that is signed, with every header under both names'],
    events: ['webhooks', 'an event that no run has'],
    tenantId: ['webhooks', 'in the own scope only: the workspace, or the tenant of whoever has none'],
    tags: ['webhooks', 'only of runs that have one of its tags'],
    signatureAlgorithms: ['webhooks', 'and is told the algorithm that its receiver can verify'],
  },
  unregisterWebhook: { '?tenantId': ['webhooks', 'and is not taken away through a scope that is not the own'] },
  listWebhooks: paged('webhooks', 'in a list that comes in pages, newest first'),
  listWebhookDeliveries: { '?state': ['webhooks', '&state=dead'], ...paged('webhooks', 'is listed in pages') },
  listSchedules: {
    '?workflowId': ['schedules', 'and listed, newest first, page by page and by workflow'],
    ...paged('schedules', 'and listed, newest first, page by page and by workflow'),
  },
  listTriggers: {
    '?workflowId': ['webhook-triggers', 'belongs to its tenant'],
    ...paged('webhook-triggers', 'is listed page by page, newest first'),
  },
  listTriggerDeliveries: all('?outcome ?limit ?cursor', [
    'trigger-deliveries',
    'is listed page by page, and by outcome',
  ]),
  rotateTrigger: all('secret url graceSeconds', [
    'webhook-triggers',
    'gets another secret, or another URL, at once or after a time',
  ]),
  createSchedule: SCHEDULE,
  replaceSchedule: SCHEDULE,
  listHeartbeats: PAGES,
  createHeartbeat: {
    ...all('intervalSec when workflowId inputs', [
      'heartbeats',
      'looks at once, tells a change and starts a run for it',
    ]),
    ...all('observe state', ['heartbeats', 'looks at runs and at stored values, too']),
  },
  listHeartbeatEvents: all('?limit ?cursor', here('limits a page, and leads on to the next, of what a heartbeat told')),
  listCommitments: {
    '?state': ['commitments', 'is listed by its state, seen by its tenant alone, and gone once it is removed'],
    ...PAGES,
  },
  createCommitment: {
    ...all('memoryRef memoryId intention workflowId inputs at', [
      'commitments',
      'is kept once its time has come, and its run says what it is for',
    ]),
    everySec: ['commitments', 'is kept again where it says so: so long after'],
    predicate: ['commitments', 'is kept once something has become true'],
  },
  listProposals: {
    ...all('?state ?kind', ['proposals', 'is listed by state and kind; of a state that there is not there are none']),
    ...paged('proposals', 'is walked through page by page'),
  },
  reviseProposal: {
    ...all('artifact title rationale', ['proposals', 'to revised, as often as somebody wants']),
    note: ['proposal-life', 'has its history beside it: each revision with who wrote it'],
  },
  previewProposal: {
    ...all('budgetUsd maxRuns', ['proposal-previews', 'spends no more than its budget']),
    criteria: ['proposal-previews', 'shows the harm that a worse prompt would have done'],
    verifierRef: ['proposal-previews', 'is rated by a verifier of the tenant'],
  },
  applyProposal: {
    artifactHash: ['proposal-reviews', 'names what is applied by its hash, and another one is not applied'],
  },
  rejectProposal: {
    ...all('reason note', ['proposals', 'to rejected, for good, with a reason that only the evidence has']),
    never: ['held-back', 'what was rejected for good is not drafted again, and others with the rejections before'],
  },
  listInstalledArtifacts: PAGES,
  listVerifiers: paged('verifiers', 'and each time as another version'),
  putVerifier: {
    ...all('id description kind', ['verifiers', 'and each time as another version']),
    criteria: ['verifiers', 'by expressions, and lets through what is good'],
    ...all('schema items', ['verifiers', 'by a schema and by a checklist, whose optional items are told and no more']),
    workflowId: ['verifiers', 'by a workflow, whose run gives the verdict'],
    ...all('rubric model', ['verifiers', 'by a model and a rubric, and what the model used is told']),
    secondJudge: ['judges', 'needs another judge, and a person if the two disagree'],
  },
  getVerifierAgreement: {
    '?period': ['judges', 'has figures of how far people agree with it, with counts and dates, and a gold set'],
  },
  judgeGoldSet: all('rubric maxCostUsd limit', [
    'judges',
    'is tried on the gold set within a budget: a rubric that agrees more is told apart',
  ]),
  listGoldSet: paged('judges', 'has figures of how far people agree with it, with counts and dates, and a gold set'),
  listGoals: { '?state': ['goals', 'for those who may see it'], ...PAGES },
  createGoal: {
    ...all('objective completion', ['goals', 'as the protocol has it, with who set it, and nothing besides']),
    continuation: ['goal-arms', 'that goes on by itself'],
    bounds: ['goals', 'by exactly as many runs as it may have, however many are asked for at once'],
  },
  editGoal: GOAL_EDIT,
  postGoal: GOAL_EDIT,
  resumeGoal: { note: ['goals', 'and goes on when told to, once for each question'] },
  putGoalPlan: {
    ...all('workflowId inputs', ['goals', 'by a plan that makes sense']),
    criteria: ['goals', 'until a criterion is met: there it closes, whatever was left'],
    ...all('schedule heartbeat commitment', ['goal-arms', 'that goes on by itself']),
    maxParallel: ['goal-arms', 'has one run at a time: no two may spend the same'],
  },
  startGoalRun: { inputs: ['goals', 'by runs that know how far it has come'] },
  listGoalEvaluations: paged('goals', 'page by page, latest first'),
  listInbox: paged('inbox', 'have everything once, newest first, however small they are'),
  lookAtInboxItem: all('kind id runId createdAt', ['inbox-viewers', 'is refused for what is not in the inbox']),
  diffRun: { '?against': ['diff', 'begins where two runs of one workflow part, and tells what that came to'] },
  getRunState: { '?sequence': ['state', 'has the status, the variables and the nodes of that moment'] },
  getDebugBundle: { '?maxEvents': ['debug-bundle', '?maxEvents=2'] },
  synthesizeProposals: {
    kinds: ['synthesis', 'drafts the path that runs of several workflows have in common'],
    ...all('sourceRunIds since', here('narrows down what a synthesis looks at')),
  },
  listMemory: {
    ...all('?memoryRef ?tag', ['memory', 'is listed page by page, read, and forgotten one by one or altogether']),
    ...paged('memory', 'is listed page by page, read, and forgotten one by one or altogether'),
  },
  forgetMemory: { '?memoryRef': ['memory', 'is listed page by page, read, and forgotten one by one or altogether'] },
  exchangeMcp: all('jsonrpc id method params', [
    'mcp-server',
    'answers for what it does not know in the words of the protocol',
  ]),
};

/** Operations whose nested members are in the table too. */
const IN_DEPTH = ['createRun'];

type Json = Answer['body'];

/** The fields of a request as the document has them: `?name` in the query, `a.b` in the body. */
function fieldsOf(document: Json, operation: Json): string[] {
  const query = operation.parameters.filter((each: Json) => each.in === 'query').map(({ name }: Json) => `?${name}`);
  const body = operation.requestBody?.content['application/json'].schema;
  return [...query, ...(body ? membersOf(document, body, IN_DEPTH.includes(operation.operationId)) : [])];
}

function membersOf(document: Json, schema: Json, inDepth: boolean): string[] {
  if (schema.$ref) return membersOf(document, document.components.schemas[schema.$ref.split('/').at(-1)], inDepth);
  const parts = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])];
  const own = Object.entries<Json>(schema.properties ?? {}).flatMap(([name, member]) => [
    name,
    ...(inDepth ? membersOf(document, member, inDepth).map((inner) => `${name}.${inner}`) : []),
  ]);
  return [...new Set([...own, ...parts.flatMap((part: Json) => membersOf(document, part, inDepth))])];
}

/** The header of every operation that writes. It is in `idempotency.test.ts`, for all of them. */
function operationsOf(document: Json): Json[] {
  const operations = Object.values<Json>(document.paths).flatMap((methods) => Object.values<Json>(methods));
  return operations.filter(({ operationId }) => !operationId.startsWith('seam'));
}

const plain = (path: string, body: object) => async (host: TestHost) => {
  const answer = await host.as('editor').post(path, body);
  expect(answer.status, answer.text).toBe(201);
};
/** How a list gets one more entry. */
const MAKERS: Readonly<Record<string, (host: TestHost) => Promise<void>>> = {
  heartbeats: plain('/v1/host/capstan/heartbeats', {
    intervalSec: 3_600,
    observe: { kv: { namespace: 'none', key: 'watched' } },
    workflowId: 'conformance-noop',
  }),
  commitments: plain('/v1/host/capstan/commitments', {
    memoryRef: 'mem://legal',
    intention: 'Remember the report',
    workflowId: 'conformance-noop',
    at: new Date(Date.now() + 24 * 60 * 60_000).toISOString(),
  }),
  goals: async (host) => void (await setGoal(host.as('editor'))),
  'artifacts/installed': async (host) => {
    const { id } = await drafted(host.as('editor'), 'prompt-template', template());
    expect((await apply(host.as('reviewer'), id)).status).toBe(200);
  },
};

onEachStore('a documented request field', (host) => {
  const api = (): Api => host().as('editor');

  it('is known, with a test that shows what it does', async () => {
    const { body: document } = await host().anonymous.get('/v1/openapi.json');
    const documented = Object.fromEntries(
      operationsOf(document)
        .map((operation) => [operation.operationId, fieldsOf(document, operation).sort()] as const)
        .filter(([, fields]) => fields.length > 0),
    );
    const known = Object.fromEntries(Object.entries(FIELDS).map(([id, fields]) => [id, Object.keys(fields).sort()]));
    expect(known).toEqual(documented);
  });

  it('of a run that is refused is refused with a status that the document has', async () => {
    const { body: document } = await host().anonymous.get('/v1/openapi.json');
    const { responses } = document.paths['/v1/runs'].post;
    const tooMuch = { workflowId: 'conformance-noop', inputs: { text: 'x'.repeat(20_000_000) } };
    for (const [body, status] of [
      [tooMuch, 413],
      [{ mode: 'eval', evalSuiteRef: 'suite-1', agentId: 'agent-1' }, 501],
    ] as const) {
      expect((await api().post('/v1/runs', body)).status).toBe(status);
      expect(Object.keys(responses)).toContain(String(status));
    }
  });

  it('of another tenant is refused', async () => {
    const start = (tenantId: string) => api().post('/v1/runs', { workflowId: 'conformance-noop', tenantId });
    expect((await start('alpha')).status).toBe(201);
    expectRefusal(await start('beta'), 403, 'forbidden');
  });

  it('of an evaluation is refused in a run that is none', async () => {
    for (const [field, value] of Object.entries({ evalSuiteRef: 'suite-1', agentId: 'agent-1' })) {
      const answer = await api().post('/v1/runs', { workflowId: 'conformance-noop', [field]: value });
      expectRefusal(answer, 400, 'validation_error');
      expect(answer.body.details.field).toBe(field);
    }
  });

  it('says after which event a poll begins, under both of its names', async () => {
    const runId = await api().run('conformance-noop');
    await api().ended(runId);
    for (const name of ['lastSequence', 'since']) {
      const { body } = await api().get(`/v1/runs/${runId}/events/poll?timeout=1&${name}=1`);
      expect(body.events[0].sequence).toBe(2);
    }
  });

  it.each(['heartbeats', 'commitments', 'goals', 'artifacts/installed'])(
    'limits a page, and leads on to the next: %s',
    async (list) => {
      const path = list === 'goals' ? '/v1/goals' : `/v1/host/capstan/${list}`;
      const make = MAKERS[list]!;
      for (let count = 0; count < 2; count++) await make(host());
      const keyOf = ({ id, goalId, ref }: Json): string => id ?? goalId ?? ref;
      const itemsOf = ({ items, goals }: Json): Json[] => items ?? goals;
      const first = (await api().get(`${path}?limit=1`)).body;
      expect(itemsOf(first)).toHaveLength(1);
      const second = (await api().get(`${path}?limit=1&cursor=${encodeURIComponent(first.nextCursor)}`)).body;
      expect(itemsOf(second)).toHaveLength(1);
      expect(keyOf(itemsOf(second)[0])).not.toBe(keyOf(itemsOf(first)[0]));
    },
  );

  it('limits a page, and leads on to the next, of what a heartbeat told', async () => {
    await MAKERS.heartbeats!(host());
    const { id } = (await api().get('/v1/host/capstan/heartbeats?limit=1')).body.items[0];
    const read = async (query: string): Promise<Json> =>
      (await api().get(`/v1/host/capstan/heartbeats/${id}/events${query}`)).body;
    const { items } = await until(
      () => read(''),
      ({ items: told }) => told.length >= 2,
    );
    const { items: first, nextCursor } = await read('?limit=1');
    const { items: second } = await read(`?limit=1&cursor=${encodeURIComponent(nextCursor)}`);
    expect([...first, ...second]).toEqual(items.slice(0, 2));
  });

  it('narrows down what a synthesis looks at', async () => {
    const synthesize = (body: object) => api().post('/v1/host/capstan/proposals:synthesize', body);
    const tomorrow = new Date(Date.now() + 24 * 60 * 60_000).toISOString();
    expect((await synthesize({ since: tomorrow })).body.created).toEqual([]);
    expect((await synthesize({ sourceRunIds: ['run-absent'] })).body.created ?? []).toEqual([]);
    expectRefusal(await synthesize({ since: 'yesterday' }), 400, 'validation_error');
    expectRefusal(await synthesize({ sourceRunIds: [] }), 400, 'validation_error');
  });

  it('says how much of what an agent reasons is told', async () => {
    const reasoned = async (configurable: object): Promise<number> => {
      const runId = await api().run('conformance-agent-reasoning', { configurable });
      expect((await api().ended(runId)).status).toBe('completed');
      return (await api().events(runId)).filter(({ type }) => type === 'agent.reasoned').length;
    };
    expect(await reasoned({})).toBeGreaterThan(0);
    expect(await reasoned({ reasoningVerbosity: 'off' })).toBe(0);
  });

  it('bounds the turns of an orchestration', async () => {
    const turns = async (configurable: object): Promise<string> => {
      const runId = await api().run('conformance-dispatch-loop', { configurable });
      const { status } = await api().ended(runId);
      const decided = (await api().events(runId)).filter(({ type }) => type === 'runOrchestrator.decided');
      return `${status} ${decided.length}`;
    };
    expect(await turns({ maxLoopIterations: 1 })).not.toBe(await turns({}));
  });
});

describe('a test in the table of fields', () => {
  it.each([
    ...new Set(Object.values(FIELDS).flatMap((fields) => Object.values(fields).map((proof) => proof.join('\n')))),
  ])('is there: %s', (proof) => {
    const [file, title = ''] = proof.split('\n');
    const text = readFileSync(new URL(`${file}.test.ts`, import.meta.url), 'utf8');
    expect(text.split(title).length).toBeGreaterThan(file === 'request-fields' ? 2 : 1);
  });
});
