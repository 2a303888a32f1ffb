import { expect, it } from 'vitest';
import { PackService } from '../../src/capabilities/ai/packs/service.ts';
import { PROMPT_TABLES } from '../../src/capabilities/ai/prompts/records.ts';
import { PromptService } from '../../src/capabilities/ai/prompts/service.ts';
import { GATE_TIMEOUT } from '../../src/capabilities/learning/proposals/activation.ts';
import { PROPOSAL_TABLES } from '../../src/capabilities/learning/proposals/records.ts';
import { ProposalService } from '../../src/capabilities/learning/proposals/service.ts';
import { gateTimeoutHandler } from '../../src/capabilities/learning/proposals/work.ts';
import { AnswerDeciders } from '../../src/capabilities/people/interrupts/door.ts';
import { INTERRUPT_TABLES } from '../../src/capabilities/people/interrupts/records.ts';
import type { Caller } from '../../src/capabilities/request.ts';
import { SCHEDULE_TABLES } from '../../src/capabilities/starting/schedules/records.ts';
import type { AuditRecord } from '../../src/capabilities/trust/audit/door.ts';
import { isRefusal, type Refusal } from '../../src/protocol/errors.ts';
import { ROLE_SCOPES, type Role } from '../../src/protocol/trust/scopes.ts';
import { changeOf, type Decide, perform } from '../../src/runtime/change.ts';
import { sql, type Write } from '../../src/store/sql.ts';
import type { Migration, Store } from '../../src/store/store.ts';
import { noVerifiers } from '../support/no-verifiers.ts';
import { seeds } from './seeds.ts';
import type { SimHost } from './sim-host.ts';
import { inStorm, type Scene, type Storm } from './storm.ts';
import type { World } from './world.ts';

/**
 * Goal: whatever dies when, a proposal is either unchanged, or applied together with its artifact, its event and its audit
 * entry, once. Method: people draft, revise, apply, vote, reject, archive and uninstall on hosts that are killed meanwhile,
 * on a store that fails before and after commits; then everything that is stored must be consistent.
 */

const SEEDS = seeds(3);
const STORM_MS = 60_000;
const RECOVERY_MS = 30_000;
const PEOPLE = 4;
/** What stands in the audit log, as far as this is about. */
const AUDITED: Migration = {
  id: 'audited/0001',
  statements: ['CREATE TABLE audited (action TEXT NOT NULL, target TEXT)'],
};

it.each(SEEDS)('applied is applied whole, or not at all: seed %i', (seed) => {
  const tables = [...INTERRUPT_TABLES, ...SCHEDULE_TABLES, ...PROMPT_TABLES, ...PROPOSAL_TABLES, AUDITED];
  return inStorm(seed, tables, (scene) => new ProposalStorm(scene).pass(), { work });
});

class ProposalStorm {
  readonly #world: World;
  readonly #store: Store;
  readonly #storm: Storm;
  readonly #services = new WeakMap<SimHost, ProposalService>();
  readonly #ids: string[] = [];
  /** Acknowledged installations by proposal, and acknowledged uninstallations. */
  readonly #applied = new Map<string, string>();
  readonly #uninstalled = new Set<string>();
  #made = 0;

  constructor({ world, store, storm }: Scene) {
    this.#world = world;
    this.#store = store;
    this.#storm = storm;
  }

  async pass(): Promise<void> {
    const world = this.#world;
    const storm = this.#storm;
    await world.settle(this.#open());
    const people = Array.from({ length: PEOPLE }, () => (host: SimHost) => this.#act(host));
    await storm.rage(people, STORM_MS, RECOVERY_MS);
    storm.over();
    await this.#check();
  }

  async #open(): Promise<void> {
    for (let count = 0; count < 3; count++) await this.#storm.startHost();
    for (let count = 0; count < 6; count++) await this.#draft(this.#storm.hosts[0]!);
  }

  #of(host: SimHost): ProposalService {
    const known = this.#services.get(host) ?? serviceOn(host);
    this.#services.set(host, known);
    return known;
  }

  async #draft(host: SimHost): Promise<void> {
    const version = `1.0.${this.#made++}`;
    const artifact = { templateId: 'learnt', version, kind: 'user', text: `number ${version}` };
    const evidence = { key: version, sources: [], nearest: [] };
    const draft = {
      kind: 'prompt-template',
      artifact: { ...artifact, templateId: `learnt-${this.#made % 5}` },
      sourceRunIds: [],
      evidence,
    } as const;
    const drafted = await done(host, () => this.#of(host).draft(EDITOR.subject, draft));
    if (!isRefusal(drafted)) this.#ids.push(drafted.id);
  }

  async #act(host: SimHost): Promise<void> {
    const { random } = this.#world;
    const proposals = this.#of(host);
    const id = random.pick(this.#ids);
    const who = random.pick([REVIEWER, SECOND]);
    const choice = random.next();
    if (choice < 0.2) return this.#draft(host);
    if (choice < 0.3) return void (await done(host, () => proposals.revise(who, id, { note: 'mine' })));
    if (choice < 0.4) return this.#rewrite(host, proposals, who, id);
    if (choice < 0.45) return void (await done(host, () => proposals.reject(who, id, 'no')));
    if (choice < 0.5) return void (await done(host, () => proposals.archive(who, id)));
    if (choice < 0.6) return this.#uninstall(host, proposals);
    if (choice < 0.75) return this.#vote(host, proposals, who, id);
    const applied = await done(host, () => proposals.apply(who, id));
    if (!isRefusal(applied) && 'installedArtifactRef' in applied) this.#applied.set(id, applied.installedArtifactRef);
  }

  /** Another text with the same meaning: whoever writes it is an author from then on. */
  async #rewrite(host: SimHost, proposals: ProposalService, who: Caller, id: string): Promise<void> {
    const row = await proposals.find(who.subject, id);
    if (!isRefusal(row)) await done(host, () => proposals.revise(who, id, { artifactText: ` ${row.text}` }));
  }

  async #vote(host: SimHost, proposals: ProposalService, who: Caller, id: string): Promise<void> {
    const record = await proposals.details(who.subject, id);
    if (isRefusal(record) || !record.gate) return;
    const { row } = record;
    const decision = this.#world.random.pick(['granted', 'granted', 'rejected']);
    const answer = { decision, artifactHash: row.sha256 };
    const resolve = () => host.interrupts.resolve(who, row.run_id, 'review', answer);
    const outcome = await perform(host.runtime, resolve, { mutexKey: row.run_id });
    if (isRefusal(outcome) || outcome.status !== 'completed') return;
    const now = await proposals.find(who.subject, id);
    if (!isRefusal(now) && now.state === 'applied') this.#applied.set(id, now.installed_ref!);
  }

  async #uninstall(host: SimHost, proposals: ProposalService): Promise<void> {
    const [installed] = await proposals.installed(REVIEWER.subject, undefined, 1);
    if (!installed) return;
    const outcome = await done(host, () => proposals.uninstall(REVIEWER, installed.ref));
    if (!isRefusal(outcome)) this.#uninstalled.add(installed.ref);
  }

  async #check(): Promise<void> {
    const rows = await this.#all<Row>('SELECT * FROM proposals');
    const installed = await this.#all<Installed>('SELECT * FROM installed_artifacts');
    const versions = await this.#all<Version>('SELECT * FROM prompt_versions');
    const events = await this.#all<{ run_id: string; type: string }>('SELECT run_id, type FROM events');
    const audited = await this.#all<{ action: string; target: string }>('SELECT * FROM audited');
    const count = <T>(list: readonly T[], isMeant: (one: T) => boolean): number => list.filter(isMeant).length;

    expect(this.#storm.kills).toBeGreaterThan(3);
    expect(count(rows, ({ state }) => state === 'applied')).toBeGreaterThan(0);
    for (const { proposal_id, run_id, state, installed_ref } of rows) {
      const wasApplied = installed_ref === null ? 0 : 1;
      const its = installed.filter((each) => each.proposal_id === proposal_id);
      const recorded = (type: string): number =>
        count(events, (event) => event.run_id === run_id && event.type === type);
      const auditedAs = (action: string): number =>
        count(audited, (entry) => entry.action === action && entry.target === proposal_id);
      const facts = {
        artifacts: its.length,
        activated: recorded('proposal.activated'),
        audited: auditedAs('proposal.apply'),
        ended: recorded('run.completed'),
        created: recorded('proposal.created'),
        uninstalled: auditedAs('proposal.uninstall'),
      };
      expect(facts, `${proposal_id} is ${state}`).toEqual({
        artifacts: wasApplied,
        activated: wasApplied,
        audited: wasApplied,
        ended: state === 'draft' || state === 'revised' ? 0 : 1,
        created: 1,
        uninstalled: count(its, ({ uninstalled_at }) => uninstalled_at !== null),
      });
      for (const { text, uninstalled_at } of its) {
        const { templateId, version } = JSON.parse(text);
        const [kept] = versions.filter((each) => each.template_id === templateId && each.version === version);
        expect(kept?.removed_at === null, `${version} is in use`).toBe(uninstalled_at === null);
        expect(JSON.parse(kept!.body).text).toBe(`number ${version}`);
      }
    }
    expect(count(versions, ({ removed_at }) => removed_at === null)).toBe(
      count(installed, ({ uninstalled_at }) => uninstalled_at === null),
    );
    // What was acknowledged has happened.
    for (const [id, ref] of this.#applied) expect(rows.find((row) => row.proposal_id === id)?.installed_ref).toBe(ref);
    for (const ref of this.#uninstalled)
      expect(installed.find((row) => row.ref === ref)?.uninstalled_at).not.toBeNull();
  }

  #all<R>(text: string): Promise<R[]> {
    return this.#world.settle(this.#store.read<R>(sql(text)));
  }
}

interface Row {
  readonly proposal_id: string;
  readonly run_id: string;
  readonly state: string;
  readonly installed_ref: string | null;
}

interface Installed {
  readonly ref: string;
  readonly proposal_id: string;
  readonly text: string;
  readonly uninstalled_at: number | null;
}

interface Version {
  readonly template_id: string;
  readonly version: string;
  readonly body: string;
  readonly removed_at: number | null;
}

/** Performs a change on a host. */
function done<T>({ runtime }: SimHost, decide: Decide<T>): Promise<T | Refusal> {
  return perform(runtime, decide);
}

/** Closes gates whose time is up. */
function work(host: SimHost) {
  return { [GATE_TIMEOUT]: { handle: gateTimeoutHandler(host.runtime, serviceOn(host).activation) } };
}

function serviceOn(host: SimHost): ProposalService {
  const { runtime, schedules } = host;
  const entry = ({ action, target }: AuditRecord) => changeOf(undefined, [auditWrite(action, target)]);
  const prompts = new PromptService({ runtime }, { entry }, 'hashed');
  const packs = new PackService(
    { runtime, advertises: () => false },
    { entry },
    { packFolder: undefined, packRegistries: [] },
  );
  const feed = { entries: () => [], wake: () => {} };
  const settings = { activation: 'approval-gate', gates: [{ timeoutSec: 20 }], pendingMax: 1_000 } as const;
  const service = new ProposalService(
    { runtime },
    { audit: { entry }, feed, prompts, packs, schedules, verifiers: noVerifiers() },
    settings,
  );
  host.contributed.push(AnswerDeciders.of(service.answerDecider));
  return service;
}

function auditWrite(action: string, target: string | undefined): Write {
  return { sql: 'INSERT INTO audited (action, target) VALUES ($1, $2)', params: [action, target ?? null] };
}

function person(principal: string, role: Role): Caller {
  return {
    subject: { tenant: 'alpha', tenantName: 'alpha', principal, issuer: 'i', lane: 'l' },
    scopes: new Set(ROLE_SCOPES[role]),
    role,
    keyId: 'key',
    isTest: false,
  };
}

const EDITOR = person('editor', 'editor');
const REVIEWER = person('reviewer', 'reviewer');
const SECOND = person('second', 'reviewer');
