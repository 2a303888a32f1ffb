import type { GoalSettings, ModelSettings } from '../capabilities/capability.ts';
import { type ProposalSettings, readGates } from '../capabilities/learning/proposals/service.ts';
import type { SynthesisSettings } from '../capabilities/learning/synthesis/service.ts';
import { isTimeZone } from '../capabilities/starting/schedules/service.ts';
import { ACTIVATIONS } from '../protocol/learning/proposals.ts';
import type { Reader } from './reader.ts';
import { DAY_MS, MINUTE_MS, SETTINGS } from './settings.ts';

/** Reads the limits of goals and their judges. */
export function goalsOf(read: Reader): GoalSettings {
  return {
    standstillMax: read.integer('goalStall', { fallback: 10, min: 2, max: 1_000_000 }),
    judgeTries: read.integer('goalJudgeTries', { fallback: 4, min: 1, max: 100 }),
    judgeRetryMs: read.integer('goalJudgeRetryMs', { fallback: 2_000, min: 1, max: 3_600_000 }),
  };
}

/** Reads the model that judges goals without criteria; the default is the first configured provider. */
export function judgeModelOf(read: Reader, models: readonly ModelSettings[]): string | undefined {
  const text = read.text('judgeModel') ?? models[0]?.provider;
  if (text === undefined || text === 'off') return undefined;
  const [provider = '', ...model] = text.split('/');
  const known = models.find((each) => each.provider === provider);
  if (known && (model.length === 0 || known.models.includes(model.join('/')))) return text;
  read.addProblem('judgeModel', ` must be off, or a provider or provider/model from ${SETTINGS.models.variable}.`);
  return undefined;
}

/** Reads how proposals are applied and which gates they need. */
export function proposalsOf(read: Reader): ProposalSettings {
  const { gates, problems } = readGates(read.text('proposalGates') ?? '[]');
  read.addProblem('proposalGates', ...problems);
  const activation = read.oneOf('proposals', ACTIVATIONS, 'approval-gate');
  return { activation, gates, pendingMax: read.integer('pendingProposals', { fallback: 50, min: 1, max: 10_000 }) };
}

/** Reads when and from what proposals are drafted. */
export function synthesisOf(read: Reader, models: readonly ModelSettings[], conformance: boolean): SynthesisSettings {
  const everyMinutes = read.integer('synthesisEvery', { fallback: 0, min: 0, max: 525_600 });
  const usualPeriodMs = conformance ? 500 : 60 * MINUTE_MS;
  return {
    supportMin: read.integer('synthesisSupport', { fallback: 3, min: 2, max: 10_000 }),
    periodMinMs: read.integer('synthesisPeriod', { fallback: usualPeriodMs, min: 1, max: 365 * DAY_MS }),
    timezones: timezonesOf(read),
    model: synthesisModelOf(read, models),
    everyMs: everyMinutes === 0 ? undefined : everyMinutes * MINUTE_MS,
  };
}

function timezonesOf(read: Reader): readonly string[] {
  const names = (read.text('synthesisTimezones') ?? 'UTC').split(',').map((name) => name.trim());
  if (names.every(isTimeZone)) return names;
  read.addProblem(
    'synthesisTimezones',
    ' must be a comma-separated list of IANA time zones, for example Europe/Berlin,UTC.',
  );
  return [];
}

function synthesisModelOf(read: Reader, models: readonly ModelSettings[]): SynthesisSettings['model'] {
  const text = read.text('synthesisModel');
  if (text === undefined) return undefined;
  const [provider = '', ...rest] = text.split('/');
  const model = rest.join('/');
  if (models.some((each) => each.provider === provider && each.models.includes(model))) return { provider, model };
  read.addProblem('synthesisModel', ` must be a provider/model from ${SETTINGS.models.variable}.`);
  return undefined;
}
