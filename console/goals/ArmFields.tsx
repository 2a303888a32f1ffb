import type { Continuation } from '../../src/protocol/learning/goals.ts';
import { AreaField, TextField } from '../parts/Fields.tsx';
import { CronField, NextRuns, ZoneField } from '../parts/NextRuns.tsx';
import type { PlanDraft } from './plan-draft.ts';

interface ArmProps {
  readonly draft: PlanDraft;
  readonly set: (change: Partial<PlanDraft>) => void;
  readonly problems: Readonly<Record<string, string>>;
}

/** What starts the runs of a goal, in the way in which it is continued. */
export function ArmFields({ mode, ...props }: ArmProps & { readonly mode: Continuation }) {
  if (mode === 'schedule') return <ScheduleFields {...props} />;
  if (mode === 'heartbeat') return <HeartbeatFields {...props} />;
  if (mode === 'commitment') return <CommitmentFields {...props} />;
  return null;
}

function ScheduleFields({ draft: { cron, timezone }, set, problems }: ArmProps) {
  return (
    <>
      <CronField cron={cron} problem={problems['schedule.cron']} onChange={(value) => set({ cron: value })} />
      <ZoneField
        timezone={timezone}
        problem={problems['schedule.timezone']}
        onChange={(value) => set({ timezone: value })}
      />
      {cron.trim() !== '' && <NextRuns cron={cron} timezone={timezone} />}
    </>
  );
}

function HeartbeatFields({ draft, set, problems }: ArmProps) {
  return (
    <>
      <TextField
        label="Seconds between two looks"
        inputMode="numeric"
        problem={problems['heartbeat.intervalSec']}
        value={draft.intervalSec}
        onChange={(intervalSec) => set({ intervalSec })}
      />
      <AreaField
        label="Observed source (optional)"
        hint={'JSON with http, kv or runs, such as {"runs":{"status":"failed"}}. Empty: the goal itself.'}
        problem={problems['heartbeat.observe']}
        rows={3}
        spellCheck={false}
        value={draft.observe}
        onChange={(observe) => set({ observe })}
      />
      <TextField
        label="Value to compare (optional)"
        hint="CEL over observed and prior."
        problem={problems['heartbeat.state']}
        spellCheck={false}
        value={draft.state}
        onChange={(state) => set({ state })}
      />
      <TextField
        label="Condition for starting a run (optional)"
        hint="CEL over from and to. Empty: every change starts a run."
        problem={problems['heartbeat.when']}
        spellCheck={false}
        value={draft.when}
        onChange={(when) => set({ when })}
      />
    </>
  );
}

function CommitmentFields({ draft, set, problems }: ArmProps) {
  return (
    <>
      <TextField
        label="Description of the commitment (optional)"
        problem={problems['commitment.intention']}
        value={draft.intention}
        onChange={(intention) => set({ intention })}
      />
      <TextField
        label="Time"
        hint="In your time zone. Either a time or a condition."
        type="datetime-local"
        problem={problems['commitment.at'] ?? problems.commitment}
        value={draft.at}
        onChange={(at) => set({ at })}
      />
      <TextField
        label="Repeat interval in seconds (optional)"
        inputMode="numeric"
        problem={problems['commitment.everySec']}
        value={draft.everySec}
        onChange={(everySec) => set({ everySec })}
      />
      <AreaField
        label="Condition"
        hint={'JSON, such as {"observe":{"runs":{}},"when":"observed.count > 3","everySec":60}.'}
        problem={problems['commitment.predicate']}
        rows={3}
        spellCheck={false}
        value={draft.predicate}
        onChange={(predicate) => set({ predicate })}
      />
    </>
  );
}
