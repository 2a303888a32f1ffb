import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import type { Answer, Api } from '../support/api.ts';
import { onOneStore } from '../support/stores.ts';
import { until } from '../support/until.ts';

const FOLDER = new URL('../../examples/', import.meta.url);

onOneStore('the example workflows', (host) => {
  const api = (): Api => host().as('editor');

  async function outcomeOf(workflowId: string, inputs: object): Promise<{ run: Answer['body']; outputs: object }> {
    const run = await api().ended(await api().run(workflowId, { inputs }));
    const last = (await api().events(run.runId)).at(-1);
    return { run, outputs: last.payload.outputs };
  }

  /** The artifact of the node that ended the run. */
  async function artifactOf(runId: string): Promise<Answer['body']> {
    const created = (await api().events(runId)).findLast(({ type }) => type === 'artifact.created');
    return (await api().get(`/v1/runs/${runId}/artifacts/${created.payload.artifactId}`)).body;
  }

  async function refusalOf(workflowId: string, inputs: object): Promise<Answer> {
    return api().post('/v1/runs', { workflowId, inputs });
  }

  describe('support-triage', () => {
    it('sorts a ticket by its words and drafts a reply', async () => {
      const { run, outputs } = await outcomeOf('support-triage', { subject: 'I cannot log in', plan: 'pro' });
      expect(run.status).toBe('completed');
      expect(outputs).toEqual({
        triage: {
          category: 'access',
          priority: 'P3',
          isEscalated: false,
          reply: expect.stringMatching(/"I cannot log in".*sign-in page.*priority P3: you hear from us today/s),
        },
      });
      expect(run.nodeStates.escalate.status).toBe('skipped');
    });

    it('pages somebody about an outage while the draft is being written', async () => {
      const { run, outputs } = await outcomeOf('support-triage', {
        subject: 'The dashboard is down',
        body: 'Error 503 since this morning',
        plan: 'enterprise',
      });
      expect(outputs).toMatchObject({
        triage: {
          category: 'outage',
          priority: 'P1',
          isEscalated: true,
          onCallNote: 'P1 from a customer on the enterprise plan: The dashboard is down',
        },
      });
      const order = (await api().events(run.runId)).map(({ type, nodeId }) => `${type} ${nodeId}`);
      expect(order.indexOf('node.started page')).toBeLessThan(order.indexOf('node.completed page'));
      expect(order.indexOf('node.completed draft')).toBeLessThan(order.indexOf('node.completed page'));
    });

    it.each([
      ['Where is my invoice?', 'free', 'billing', 'P4', false],
      ['How do I export my data?', 'enterprise', 'question', 'P2', true],
      ['Your API is unreachable', 'free', 'outage', 'P3', true],
    ])('takes "%s" from %s for %s, %s', async (subject, plan, category, priority, isEscalated) => {
      const { outputs } = await outcomeOf('support-triage', { subject, plan });
      expect(outputs).toMatchObject({ triage: { category, priority, isEscalated } });
    });

    it('keeps the result as an artifact and the address to itself', async () => {
      const email = 'someone@customer.example';
      const { run } = await outcomeOf('support-triage', { subject: 'Hello', email });
      const artifact = await artifactOf(run.runId);
      expect(artifact).toMatchObject({ artifactType: 'support.triage', data: { category: 'question' } });
      expect(artifact.data.replyTo).toBeDefined();
      expect(JSON.stringify([run, artifact, await api().events(run.runId)])).not.toContain(email);
    });

    it('says what is wrong with bad input', async () => {
      const missing = await refusalOf('support-triage', { plan: 'pro' });
      expect(missing).toMatchObject({ status: 400, body: { details: { field: 'inputs.subject' } } });
      const { run } = await outcomeOf('support-triage', { subject: 'Hello', plan: 'platinum' });
      expect(run).toMatchObject({ status: 'failed', error: { code: 'unknown_plan' } });
      const wrongType = await refusalOf('support-triage', { subject: 42 });
      expect(wrongType).toMatchObject({ status: 400, body: { details: { field: 'inputs.subject' } } });
    });
  });

  describe('release-checklist', () => {
    const good = { failingTests: 0, vulnerabilities: 0, sizeKb: 182, undocumentedChanges: 0 };

    /** The run, once somebody has said what they think of the release. */
    async function signedOff(inputs: object, action: string): Promise<Answer['body']> {
      const runId = await api().run('release-checklist', { inputs });
      const waiting = await api().until(runId, ({ status }) => status === 'waiting-approval');
      expect(waiting.interrupt.data).toMatchObject({ title: 'Ship this release?', artifactData: { version: '2.4.0' } });
      await api().post(`/v1/runs/${runId}/interrupts/sign-off`, { resumeValue: { action } });
      return api().ended(runId);
    }

    it('ships when every check passes and a person says so, with notes', async () => {
      const run = await signedOff({ version: '2.4.0', changes: ['Faster start'] }, 'accept');
      expect(run).toMatchObject({ status: 'completed', childRuns: expect.any(Array) });
      expect(run.childRuns).toHaveLength(4);
      expect(run.nodeStates.decide.outputs).toMatchObject({ decision: 'ship', blockers: [] });
      const artifact = await artifactOf(run.runId);
      expect(artifact.artifactType).toBe('release.notes');
      expect(artifact.data.text).toMatch(/^# Release 2\.4\.0\n\n- Faster start\n/);
      expect(artifact.data.text).toContain('- pass: Download size in kB, 182 of at most 250');
    });

    it('holds when the person says no', async () => {
      const run = await signedOff({ version: '2.4.0' }, 'reject');
      expect(run.nodeStates.ship.status).toBe('skipped');
      expect((await artifactOf(run.runId)).data.text).toContain('In its way: nobody signed it off\n');
    });

    it('runs its checks side by side and gathers what they find in a channel', async () => {
      const run = await signedOff({ version: '2.4.0' }, 'accept');
      const events = await api().events(run.runId);
      const firstEnd = events.findIndex(({ type, nodeId }) => type === 'node.completed' && nodeId.startsWith('check-'));
      const dispatched = events.slice(0, firstEnd).filter(({ type }) => type === 'node.dispatched');
      expect(dispatched).toHaveLength(4);
      const titles = run.channels.results.map(({ title }: { title: string }) => title).sort();
      expect(titles).toEqual(['Download size in kB', 'Failing tests', 'Known vulnerabilities', 'Undocumented changes']);
    });

    it('holds for a blocking check and only warns for another', async () => {
      const measurements = { ...good, failingTests: 3, sizeKb: 300 };
      const { run } = await outcomeOf('release-checklist', { version: '2.4.0', measurements });
      expect(run.nodeStates.decide.outputs).toMatchObject({ decision: 'hold', blockers: ['Failing tests'] });
      expect(run.nodeStates.ship.status).toBe('skipped');
      const { artifactType, data } = await artifactOf(run.runId);
      expect(artifactType).toBe('release.hold');
      expect(data.text).toContain('In its way: Failing tests\n');
      expect(data.text).toContain('- warn: Download size in kB, 300 of at most 250');
    });

    it('lets a caller tighten a limit', async () => {
      const sizeLimit = { title: 'Download size in kB', metric: 'sizeKb', max: 100, isBlocking: true };
      const { run } = await outcomeOf('release-checklist', { version: '2.4.0', sizeLimit });
      expect(run.nodeStates.decide.outputs).toMatchObject({ decision: 'hold', blockers: ['Download size in kB'] });
    });

    it('takes a check that broke down for a failed one', async () => {
      const measurements = { ...good, vulnerabilities: 'many' };
      const { run } = await outcomeOf('release-checklist', { version: '2.4.0', measurements });
      expect(run.status).toBe('completed');
      expect(run.nodeStates['check-security'].outputs).toMatchObject({ childStatus: 'failed' });
      expect(run.nodeStates.decide.outputs).toMatchObject({ decision: 'hold', blockers: ['Known vulnerabilities'] });
    });

    it('refuses what is not a version', async () => {
      const { run } = await outcomeOf('release-checklist', { version: 'next' });
      expect(run).toMatchObject({ status: 'failed', error: { code: 'bad_version' } });
      expect(run.childRuns ?? []).toEqual([]);
      expect((await refusalOf('release-checklist', {})).status).toBe(400);
    });
  });

  describe('order-fulfilment', () => {
    const order = { orderId: 'A-1001', card: '4242 4242 4242 4242' };
    const statuses = (run: Answer['body']): Record<string, string> =>
      Object.fromEntries(
        ['reserve', 'charge', 'ship', 'refund', 'restock'].map((id) => [id, run.nodeStates[id].status]),
      );

    it('reserves, charges and ships', async () => {
      const { run } = await outcomeOf('order-fulfilment', order);
      expect(run.status).toBe('completed');
      expect(statuses(run)).toEqual({
        reserve: 'completed',
        charge: 'completed',
        ship: 'completed',
        refund: 'skipped',
        restock: 'skipped',
      });
      expect(run.nodeStates.outcome.outputs).toEqual({ outcome: 'fulfilled', failedStep: 'none' });
      const { artifactType, data } = await artifactOf(run.runId);
      expect(artifactType).toBe('order.confirmation');
      expect(data.text).toMatch(/A-1001 is on its way.*2 x capstan-mug.*25 EUR \(PAY-[0-9a-f]{8}\)/s);
    });

    it.each([
      ['reserve', 'failed skipped skipped skipped skipped', 'undone'],
      ['charge', 'completed failed skipped skipped completed', 'undone'],
      ['ship', 'completed completed failed completed completed', 'undone'],
      ['ship,refund', 'completed completed failed failed completed', 'needs attention'],
    ])('undoes what was done when %s fails, and still completes', async (failAt, ends, outcome) => {
      const { run } = await outcomeOf('order-fulfilment', { ...order, failAt });
      expect(run.status).toBe('completed');
      expect(Object.values(statuses(run)).join(' ')).toBe(ends);
      expect(run.nodeStates.outcome.outputs).toEqual({ outcome, failedStep: failAt.split(',')[0] });
      expect((await artifactOf(run.runId)).artifactType).toBe('order.apology');
    });

    it('tries a step three times, with one key, before it gives up', async () => {
      const { run } = await outcomeOf('order-fulfilment', { ...order, failAt: 'charge' });
      const { childRunId } = run.nodeStates.charge.error.details;
      const child = await api().ended(childRunId);
      expect(child).toMatchObject({ status: 'failed', error: { code: 'service_refused' }, parentRunId: run.runId });
      const events = await api().events(childRunId);
      expect(events.filter(({ type }) => type === 'node.retried')).toHaveLength(2);
      expect(events.filter(({ type, nodeId }) => type === 'node.completed' && nodeId === 'key')).toHaveLength(1);
    });

    it('shows the card to nobody, in the run or in the run of a step', async () => {
      const { run } = await outcomeOf('order-fulfilment', order);
      const children = await Promise.all(run.childRuns.map(({ runId }: { runId: string }) => api().ended(runId)));
      expect(children.filter(({ inputs }) => 'credential' in inputs)).toHaveLength(1);
      expect(JSON.stringify([run, children])).not.toContain('4242 4242');
    });

    it('rejects an order with nothing in it before anything is done', async () => {
      const { run } = await outcomeOf('order-fulfilment', { ...order, items: [] });
      expect(run.status).toBe('completed');
      expect(run.nodeStates.outcome.outputs).toEqual({ outcome: 'rejected', failedStep: 'check' });
      expect(run.childRuns ?? []).toEqual([]);
      const wrongType = await refusalOf('order-fulfilment', { ...order, items: 'mugs' });
      expect(wrongType).toMatchObject({ status: 400, body: { details: { field: 'inputs.items' } } });
      expect((await refusalOf('order-fulfilment', {})).status).toBe(400);
    });
  });

  describe('sales-report', () => {
    it('works out each line, leaves out what makes no sense, and sums up by region', async () => {
      const table = 'region,price,count\nnorth,2.50,4\nsouth,10,3\nnorth,free,1\nnorth,1,2\n';
      const { run, outputs } = await outcomeOf('sales-report', { table });
      expect(run.status, JSON.stringify(run.error)).toBe('completed');
      expect(run.childRuns).toHaveLength(4);
      expect(outputs).toEqual({ report: { text: 'south: 30.00\nnorth: 12.00', leftOut: 1 } });
      expect(await artifactOf(run.runId)).toMatchObject({ artifactType: 'report.sales', data: { leftOut: 1 } });
      expect(run.nodeStates.lines.outputs.children[2]).toMatchObject({ error: { code: 'bad_line' } });
    });

    it('reports nothing of an empty table', async () => {
      const { outputs } = await outcomeOf('sales-report', { table: 'region,price,count\n' });
      expect(outputs).toEqual({ report: { text: '', leftOut: 0 } });
    });
  });

  describe('nightly-report', () => {
    it('counts what is open and reminds of what is overdue', async () => {
      const { run } = await outcomeOf('nightly-report', { team: 'facilities' });
      expect(run.status).toBe('completed');
      const { artifactType, data } = await artifactOf(run.runId);
      expect(artifactType).toBe('report.nightly');
      expect(data).toEqual({
        text: 'Nightly report for facilities: 2 open, 1 of them overdue.',
        reminder: 'Please look at Printer on the third floor: open for 9 days.',
      });
    });

    it('reminds of nothing when nothing is overdue', async () => {
      const { run, outputs } = await outcomeOf('nightly-report', { overdueAfterDays: 14 });
      expect(outputs).toEqual({ report: { text: 'Nightly report for support: 2 open, 0 of them overdue.' } });
      expect(run.nodeStates.remind.status).toBe('skipped');
    });

    it('runs by itself once there is a schedule', async () => {
      const runAt = new Date().toISOString();
      const made = await api().post('/v1/host/capstan/schedules', { workflowId: 'nightly-report', runAt });
      expect(made.status, made.text).toBe(201);
      const { body } = await until(
        () => api().get(`/v1/host/capstan/runs?tag=schedule:${made.body.id}`),
        (answer) => answer.body.items.length > 0,
      );
      expect(await api().ended(body.items[0].runId)).toMatchObject({ status: 'completed' });
    });
  });
});

describe('the example definitions', () => {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));
  const read = (file: string): WorkflowDefinition => JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8'));

  it.each(files)('%s explains itself', (file) => {
    const { id, description, nodes, variables, triggers } = read(file);
    expect(`${id}.json`).toBe(file);
    expect(description).toBeTruthy();
    for (const node of nodes) expect(node, node.id).toHaveProperty('notes');
    for (const variable of variables) expect(variable, variable.name).toHaveProperty('description');
    for (const trigger of triggers) expect(trigger, trigger.id).toHaveProperty('description');
  });

  it.each(files)('%s reads from left to right', (file) => {
    const { nodes, edges } = read(file);
    const placed = new Map(nodes.map(({ id, position }) => [id, position]));
    for (const { id, sourceNodeId, targetNodeId } of edges) {
      expect(placed.get(targetNodeId)!.x - placed.get(sourceNodeId)!.x, id).toBeGreaterThanOrEqual(200);
    }
    expect(new Set(nodes.map(({ position }) => `${position.x},${position.y}`)).size).toBe(nodes.length);
  });

  it.each(files)('%s labels every edge that is not always taken', (file) => {
    const conditional = read(file).edges.filter(({ condition, triggerRule }) => condition ?? triggerRule);
    for (const edge of conditional) expect(edge, edge.id).toHaveProperty('label');
  });
});
