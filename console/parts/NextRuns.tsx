import { useQuery } from '@tanstack/react-query';
import { ChoiceField, TextField } from './Fields.tsx';
import { loaded } from './loaded.ts';
import styles from './NextRuns.module.css';
import { exactly } from './time.ts';

const SHOWN_NEXT = 5;

/** When a cron expression is due next; what is wrong with it, if nothing is. */
export function NextRuns({ cron, timezone }: { readonly cron: string; readonly timezone: string }) {
  const { data, error } = useQuery({
    queryKey: ['firings', cron, timezone],
    queryFn: async () => {
      const { Cron } = await loaded(() => import('croner'));
      return new Cron(cron, { timezone, mode: '5-or-6-parts' }).nextRuns(SHOWN_NEXT).map((time) => time.toISOString());
    },
  });
  if (error) return <p className={styles.problem}>{error.message.replace(/^CronPattern: /, '')}</p>;
  if (!data) return null;
  return (
    <section aria-label="Next runs">
      <h3>Next runs, in your time zone</h3>
      <ol className={styles.list}>
        {data.map((time) => (
          <li key={time} className="number">
            {exactly(time)}
          </li>
        ))}
      </ol>
    </section>
  );
}

interface PartProps {
  readonly problem: string | undefined;
  readonly onChange: (value: string) => void;
}

/** A field for a cron expression. */
export function CronField({ cron, problem, onChange }: PartProps & { readonly cron: string }) {
  return (
    <TextField
      label="Cron expression"
      hint="Minute, hour, day, month, day of the week; 0 9 * * 1-5 is nine o'clock on working days."
      problem={problem}
      required
      maxLength={256}
      spellCheck={false}
      value={cron}
      onChange={onChange}
    />
  );
}

const ZONES = Intl.supportedValuesOf('timeZone');

/** A field for the time zone of a cron expression. */
export function ZoneField({ timezone, problem, onChange }: PartProps & { readonly timezone: string }) {
  const zones = [...new Set(['UTC', timezone, ...ZONES])];
  return (
    <ChoiceField
      label="Time zone"
      problem={problem}
      value={timezone}
      onChange={onChange}
      choices={zones.map((zone) => [zone, zone] as const)}
    />
  );
}
