import { PERSONAL_DATA_KINDS, type PersonalDataKind } from '../../../system/personal-data.ts';
import { modelSettings } from '../../ai/models/settings.ts';
import { defineSettings, type SettingsReader } from '../../settings.ts';
import { isTimeZone } from '../../starting/schedules/door.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** What counts as a habit that is worth proposing, and how often tenants are scanned. */
export interface SynthesisSettings {
  /** Observations that a habit must have. */
  readonly supportMin: number;
  /** What people start more often than this is not proposed as a schedule. */
  readonly periodMinMs: number;
  /** Time zones that people may go by, the likeliest first. */
  readonly timezones: readonly string[];
  /** The time zones of tenants, and of workspaces as `tenant/workspace`. */
  readonly timezoneOf?: ReadonlyMap<string, string>;
  /** The model that words proposals; without one they are worded by templates. */
  readonly model?: { readonly provider: string; readonly model: string } | undefined;
  /** The kinds of personal data that drafts never contain; all of them unless it says otherwise. */
  readonly personalData?: readonly PersonalDataKind[];
  /** What a proposed schedule may cost for models in a month; unlimited where this is missing. */
  readonly monthlyUsdMax?: number | undefined;
  /** How often every tenant is scanned; only on request where this is missing. */
  readonly everyMs?: number | undefined;
}

/** The thresholds of synthesis. */
export const synthesisSettings = defineSettings({
  variables: {
    synthesisSupport: {
      variable: 'CAPSTAN_SYNTHESIS_MIN_SUPPORT',
      meaning: 'occurrences of a pattern before it is proposed (3)',
    },
    synthesisPeriod: {
      variable: 'CAPSTAN_SYNTHESIS_MIN_PERIOD_MS',
      meaning: 'shortest period in milliseconds that is proposed as a schedule (1 hour)',
    },
    synthesisTimezones: {
      variable: 'CAPSTAN_SYNTHESIS_TIMEZONES',
      meaning:
        'comma-separated time zones to try for schedules, most likely first, and those of tenants and workspaces, for example "Europe/Berlin,UTC,acme=America/New_York,acme/north=Asia/Tokyo" (UTC)',
    },
    synthesisModel: {
      variable: 'CAPSTAN_SYNTHESIS_MODEL',
      meaning: 'provider/model that writes the texts of proposals (none: fixed texts)',
    },
    synthesisPersonalData: {
      variable: 'CAPSTAN_SYNTHESIS_PERSONAL_DATA',
      meaning: `comma-separated kinds of personal data to leave out of drafts, or none (${PERSONAL_DATA_KINDS.join(',')})`,
    },
    synthesisMonthlyUsd: {
      variable: 'CAPSTAN_SYNTHESIS_MAX_MONTHLY_USD',
      meaning: 'whole dollars that a proposed schedule may cost for models in a month (0: any amount)',
    },
    synthesisEvery: {
      variable: 'CAPSTAN_SYNTHESIS_EVERY_MINUTES',
      meaning: 'interval in minutes at which proposals are drafted for every tenant (0: only on request)',
    },
  },
  read: (read): { readonly synthesis: SynthesisSettings } => {
    const everyMinutes = read.integer('synthesisEvery', { otherwise: 0, min: 0, max: 525_600 });
    const monthlyUsd = read.integer('synthesisMonthlyUsd', { otherwise: 0, min: 0, max: 1_000_000_000 });
    return {
      synthesis: {
        supportMin: read.integer('synthesisSupport', { otherwise: 3, min: 2, max: 10_000 }),
        periodMinMs: read.integer('synthesisPeriod', { otherwise: 60 * MINUTE_MS, min: 1, max: 365 * DAY_MS }),
        ...timezonesOf(read),
        model: modelOf(read),
        personalData: personalDataOf(read),
        monthlyUsdMax: monthlyUsd === 0 ? undefined : monthlyUsd,
        everyMs: everyMinutes === 0 ? undefined : everyMinutes * MINUTE_MS,
      },
    };
  },
});

type Timezones = Required<Pick<SynthesisSettings, 'timezones' | 'timezoneOf'>>;

/** Entries are time zones, or `tenant=zone` and `tenant/workspace=zone`. */
function timezonesOf(read: SettingsReader<'synthesisTimezones'>): Timezones {
  const entries = (read.text('synthesisTimezones') ?? 'UTC').split(',').map((entry) => entry.trim().split('='));
  if (entries.every((entry) => entry.length <= 2 && isTimeZone(entry.at(-1)!))) {
    const everywhere = entries.flatMap(([zone, ...owned]) => (owned.length === 0 ? [zone!] : []));
    const timezoneOf = new Map(
      entries.flatMap(([owner, zone]) => (zone === undefined ? [] : [[owner!, zone] as const])),
    );
    return { timezones: everywhere.length === 0 ? ['UTC'] : everywhere, timezoneOf };
  }
  read.report(
    'synthesisTimezones',
    ' must be a comma-separated list of IANA time zones, for example Europe/Berlin,UTC, or of tenant=zone.',
  );
  return { timezones: [], timezoneOf: new Map() };
}

function personalDataOf(read: SettingsReader<'synthesisPersonalData'>): readonly PersonalDataKind[] {
  const text = read.text('synthesisPersonalData');
  if (text === undefined) return PERSONAL_DATA_KINDS;
  const names = text === 'none' ? [] : text.split(',').map((name) => name.trim());
  const kinds = PERSONAL_DATA_KINDS.filter((kind) => names.includes(kind));
  if (kinds.length !== names.length) {
    read.report('synthesisPersonalData', ` must be none, or some of ${PERSONAL_DATA_KINDS.join(', ')}.`);
  }
  return kinds;
}

function modelOf(read: SettingsReader<'synthesisModel'>): SynthesisSettings['model'] {
  const text = read.text('synthesisModel');
  if (text === undefined) return undefined;
  const [provider = '', ...rest] = text.split('/');
  const model = rest.join('/');
  const { models } = read.of(modelSettings);
  if (models.some((each) => each.provider === provider && each.models.includes(model))) return { provider, model };
  read.report('synthesisModel', ` must be a provider/model from ${modelSettings.variables.models!.variable}.`);
  return undefined;
}
