import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineCapability, type Host } from '../capabilities/capability.ts';
import { type Client, createClient, type RunEvent } from '../client/index.ts';
import { readConfig } from '../config.ts';
import { type RunningHost, startHost } from '../host.ts';
import type { RunError } from '../protocol/errors.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import { isTerminalStatus } from '../protocol/running/run-status.ts';
import type { RunSnapshot } from '../protocol/running/runs.ts';
import { type DueTenant, dueTenants } from '../store/queue.ts';
import { sleep } from '../system/clock.ts';
import type { Log } from '../system/log.ts';
import { realClock, realIds } from '../system/real.ts';
import type { ProjectDefinition } from './define-project.ts';
import { defineProject } from './define-project.ts';
import { type NodeException, printException } from './node-exception.ts';
import { ownProject } from './own-project.ts';
import { SkippingClock } from './skipping-clock.ts';

/** What a run under test waits for. */
export interface TestQuestion {
  readonly nodeId: string;
  /** `approval`, `clarification`, `external-event`, … */
  readonly kind: string;
  readonly data: JsonObject;
}

/** What happens around a run under test. */
export interface TestOptions {
  /** Variables of the run. */
  readonly inputs?: JsonObject;
  /**
   * Answers what the run asks people, or the event that it waits for: `{ action: 'accept' }` for an approval,
   * `{ answers: { answer } }` for `ask`. If there is no answer, it times out, or the test ends with a waiting run.
   */
  readonly answer?: (question: TestQuestion) => JsonObject | undefined;
  /** What models answer: the first entry that matches, as in the script of a scripted provider. */
  readonly model?: readonly JsonObject[];
  /** Told of exceptions that the code of a node did not mean; by default their stacks go to the standard error. */
  readonly onException?: (exception: NodeException) => void;
}

/** How a run under test ended. */
export interface TestedRun {
  readonly status: RunSnapshot['status'];
  /** The outputs of each node that completed, by node id. */
  readonly outputs: Readonly<Record<string, JsonObject>>;
  readonly variables: JsonObject;
  readonly error: RunError | undefined;
  /** What it waits for, if the test did not answer. */
  readonly question: TestQuestion | undefined;
  readonly events: readonly RunEvent[];
}

/**
 * Runs a workflow of a project on a host of its own that is gone afterwards, with your real nodes. Waits take no time:
 * the clock is put forward to what comes next whenever there is nothing left to do.
 */
export async function testWorkflow(
  project: ProjectDefinition,
  workflow: string | { readonly id: string },
  options: TestOptions = {},
): Promise<TestedRun> {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-test-'));
  try {
    const tested = await startTested(project, folder, options);
    try {
      return await runOn(tested, typeof workflow === 'string' ? workflow : workflow.id, options);
    } finally {
      await tested.running.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Tested {
  readonly running: RunningHost;
  readonly client: Client;
  readonly clock: SkippingClock;
  readonly host: Host;
}

/** The log of a host under test: only what the code of nodes throws is of interest. */
function exceptionLog(onException: (exception: NodeException) => void): Log {
  const warn = (fields: object): void => {
    const { err: error, ...place } = fields as { readonly err?: unknown } & Omit<NodeException, 'error'>;
    if (error !== undefined && place.nodeId !== undefined) onException({ ...place, error });
  };
  return { debug: () => {}, info: () => {}, warn, error: () => {} };
}

async function startTested(
  project: ProjectDefinition,
  folder: string,
  { model: answers, onException = printException }: TestOptions,
): Promise<Tested> {
  const workflowsFolder = join(folder, 'workflows');
  mkdirSync(workflowsFolder);
  const models = answers ? { models: JSON.stringify([scripted(folder, answers)]) } : {};
  const settings = readConfig({ port: '0', data: join(folder, 'data'), ...models }, {});
  const config = { ...settings, workflowsFolder, allowLoopback: true };
  const clock = new SkippingClock(realClock);
  const found: { host?: Host } = {};
  const finder = defineCapability({
    name: 'test-clock',
    build: (host) => {
      found.host = host;
      return {};
    },
  });
  const extra = [ownProject(defineProject(project)), finder];
  const running = await startHost(config, { clock, ids: realIds(clock), log: exceptionLog(onException) }, extra);
  return { running, client: createClient({ url: running.url, key: running.firstKey }), clock, host: found.host! };
}

function scripted(folder: string, answers: readonly JsonObject[]): JsonObject {
  const script = join(folder, 'model.json');
  writeFileSync(script, JSON.stringify({ answers }));
  return { provider: 'test', kind: 'scripted', script, models: ['test'] };
}

async function runOn(tested: Tested, workflowId: string, { inputs = {}, answer }: TestOptions): Promise<TestedRun> {
  const { client } = tested;
  const { runId } = await client.createRun({ workflowId, inputs });
  for (let tenant: string | undefined; ; ) {
    // Read before the snapshot: what the run waits for is then over or in it, such as a question without an end.
    const due = await dueTime(tested, tenant);
    const snapshot = await client.getRun(runId);
    if (isTerminalStatus(snapshot.status)) return reportOn(client, snapshot);
    const { interrupt } = snapshot;
    tenant = snapshot.owner?.tenant;
    const given = interrupt && answer?.(interrupt);
    if (given) await client.resolveInterruptByRun(runId, interrupt.nodeId, { resumeValue: given });
    else if (interrupt && interrupt.expiresAt === undefined) return reportOn(client, snapshot);
    else {
      if (due !== undefined && tested.running.isIdle()) tested.clock.skipTo(due);
      await sleep(realClock, 1);
    }
  }
}

/** When the next thing of the tenant is due; undefined while something is being done. */
async function dueTime({ running, host }: Tested, tenant: string | undefined): Promise<number | undefined> {
  if (!running.isIdle()) return undefined;
  const tenants = await host.runtime.store.read<DueTenant>(dueTenants('', 10, []));
  // The housekeeping of the host is always due soon.
  const due = tenants.find((each) => each.tenant === tenant)?.due_at;
  return due == null || !running.isIdle() ? undefined : Number(due);
}

async function reportOn(client: Client, snapshot: RunSnapshot): Promise<TestedRun> {
  const { runId, status, nodeStates = {}, variables = {}, error, interrupt } = snapshot;
  const outputs = Object.entries(nodeStates).flatMap(([id, state]) => (state.outputs ? [[id, state.outputs]] : []));
  const { events } = await client.pollRunEvents(runId);
  return { status, outputs: Object.fromEntries(outputs), variables, error, question: interrupt, events };
}
