import { Compile } from 'typebox/compile';
import { isRefusal } from '../../../../protocol/errors.ts';
import { once } from '../../../../protocol/format/once.ts';
import { type Schedule, ScheduleSpec } from '../../../../protocol/starting/schedules.ts';
import { schemaProblemsByPointer } from '../../../../runtime/catalog.ts';
import { and, changeOf, withResult } from '../../../../runtime/change.ts';
import type { Store } from '../../../../store/store.ts';
import { nextSlot, type Schedules } from '../../../starting/schedules/door.ts';
import { countInstallation, countInstallations } from '../records.ts';
import { type Installer, type ProposedArtifact, problemsOf } from './installer.ts';

const shape = once(() => Compile(ScheduleSpec));
/** Schedules of the workflow that are compared with the base of a proposal. */
const SCHEDULES_COMPARED = 100;
const FIRINGS_SHOWN = 5;

/** Installs an automation as a new schedule. The schedule belongs to its proposal: nobody else can change it. */
export function automationInstaller(schedules: Schedules, store: Store): Installer {
  const create = ({ author, proposalId, text }: ProposedArtifact) =>
    schedules.create(author, specOf(text), { kind: 'proposal', id: proposalId });

  return {
    async check(artifact) {
      const misfits = schemaProblemsByPointer(shape(), JSON.parse(artifact.text));
      if (misfits.length > 0) return misfits;
      const created = await create(artifact);
      return isRefusal(created) ? problemsOf(created) : [];
    },

    async preview(artifact) {
      const created = shape().Check(JSON.parse(artifact.text)) ? await create(artifact) : undefined;
      if (!created || isRefusal(created)) return undefined;
      return { kind: 'automation', nextFirings: firingsOf(created.result) };
    },

    async current({ author, text }) {
      const { workflowId } = specOf(text);
      const found = await schedules.list(author, { workflowId }, SCHEDULES_COMPARED);
      return found.map(({ id, updatedAt }) => `schedule:${id}@${updatedAt}`).join(' ');
    },

    async install(artifact) {
      const created = await create(artifact);
      if (isRefusal(created)) return created;
      const { id: scheduleId, workflowId } = created.result;
      const target = { tenant: artifact.author.subject.tenant, workflowId };
      const [known] = await store.read<{ turn: number }>(countInstallations(target));
      const counted = changeOf(undefined, [countInstallation(target, known?.turn ?? 0)], { retryOn: ['revision'] });
      return withResult(and(created, counted), () => ({ undo: { scheduleId } }));
    },

    uninstall: async ({ subject }, undo) => schedules.removeOwned(subject, undo.scheduleId as string),
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
