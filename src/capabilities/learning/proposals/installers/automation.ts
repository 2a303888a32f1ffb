import { Compile } from 'typebox/compile';
import { isRefusal } from '../../../../protocol/errors.ts';
import { type Schedule, ScheduleSpec } from '../../../../protocol/starting/schedules.ts';
import { placesOfMisfits } from '../../../../runtime/catalog.ts';
import type { Store } from '../../../../store/store.ts';
import { nextSlot, type Schedules } from '../../../starting/schedules/door.ts';
import { findTurn, takeTurn } from '../records.ts';
import { type Candidate, type Installer, problemsOf } from './installer.ts';

const shape = Compile(ScheduleSpec);
/** Schedules of one workflow that are looked at. */
const LOOKED_AT = 100;
const FIRINGS_SHOWN = 5;

/** A schedule comes into the world beside those that there are. It belongs to its proposal, and is changed by nobody. */
export function automationInstaller(schedules: Schedules, store: Store): Installer {
  const make = ({ author, proposalId, text }: Candidate) =>
    schedules.create(author, specOf(text), { kind: 'proposal', id: proposalId });

  return {
    async check(candidate) {
      const misfits = placesOfMisfits(shape, JSON.parse(candidate.text));
      if (misfits.length > 0) return misfits;
      const made = await make(candidate);
      return isRefusal(made) ? problemsOf(made) : [];
    },

    async preview(candidate) {
      const made = shape.Check(JSON.parse(candidate.text)) ? await make(candidate) : undefined;
      if (!made || isRefusal(made)) return undefined;
      return { kind: 'automation', nextFirings: firingsOf(made.result) };
    },

    async current({ author, text }) {
      const { workflowId } = specOf(text);
      const found = await schedules.list(author, { workflowId }, LOOKED_AT);
      return found.map(({ id, updatedAt }) => `schedule:${id}@${updatedAt}`).join(' ');
    },

    async install(candidate) {
      const made = await make(candidate);
      if (isRefusal(made)) return made;
      const { result: schedule, writes, announce } = made;
      const target = { tenant: candidate.author.subject.tenant, workflowId: schedule.workflowId };
      const [known] = await store.read<{ turn: number }>(findTurn(target));
      return {
        writes: [takeTurn(target, known?.turn ?? 0), ...writes],
        undo: { scheduleId: schedule.id },
        committed: () => {
          for (const tell of announce) tell();
        },
      };
    },

    uninstall: async ({ subject }, undo) => schedules.removeOwned(subject, undo.scheduleId as string).writes,
  };
}

function firingsOf({ nextRunAt, cron, timezone }: Schedule): string[] {
  const times: string[] = [];
  let at = nextRunAt === undefined ? undefined : Date.parse(nextRunAt);
  while (at !== undefined && times.length < FIRINGS_SHOWN) {
    times.push(new Date(at).toISOString());
    at = cron === undefined ? undefined : nextSlot({ cron, timezone }, at);
  }
  return times;
}

function specOf(text: string): ScheduleSpec {
  return JSON.parse(text) as ScheduleSpec;
}
