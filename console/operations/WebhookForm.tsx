import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { client } from '../api/client.ts';
import { webhookEventsQuery } from '../api/operations.ts';
import { Button } from '../parts/Button.tsx';
import { Dialog } from '../parts/Dialog.tsx';
import { TextField } from '../parts/Fields.tsx';
import { FormDialog } from '../parts/FormDialog.tsx';
import { problemsOf } from '../parts/field-problems.ts';
import styles from './Operations.module.css';
import { Secret } from './Secret.tsx';

/** What most receivers want to know. */
const USUAL = ['run.completed', 'run.failed', 'run.cancelled', 'interrupt.requested'];

/** Makes a webhook, and shows its secret once. */
export function WebhookForm({ onClose }: { readonly onClose: () => void }) {
  const cache = useQueryClient();
  const [url, setUrl] = useState('');
  const [events, setEvents] = useState<readonly string[]>(['run.completed', 'run.failed']);
  const [tags, setTags] = useState('');
  const make = useMutation({
    mutationFn: () => {
      const wanted = tags.split(/[\s,]+/).filter(Boolean);
      return client.registerWebhook({ url, events: [...events], ...(wanted.length > 0 && { tags: wanted }) });
    },
    onSuccess: () => cache.invalidateQueries({ queryKey: ['webhooks'] }),
  });
  const problems = problemsOf(make.error, ['url', 'events', 'tags']);
  if (make.data) {
    return (
      <Dialog title="New webhook" isOpen isSide onClose={onClose} footer={<Button onClick={onClose}>Done</Button>}>
        <Secret label="the secret" text={make.data.secret} />
      </Dialog>
    );
  }
  return (
    <FormDialog
      title="New webhook"
      action="Make webhook"
      isBusy={make.isPending}
      canSend={events.length > 0}
      problem={problems.rest}
      onSubmit={() => make.mutate()}
      onClose={onClose}
    >
      <TextField
        label="Address"
        hint="https, and reachable from the host."
        problem={problems.fields.url}
        type="url"
        required
        maxLength={2_048}
        placeholder="https://"
        value={url}
        onChange={setUrl}
      />
      <Events chosen={events} choose={setEvents} problem={problems.fields.events} />
      <TextField
        label="Tags (optional)"
        hint="Only runs with one of these tags, separated by commas."
        problem={problems.fields.tags}
        value={tags}
        onChange={setTags}
      />
    </FormDialog>
  );
}

interface EventsProps {
  readonly chosen: readonly string[];
  readonly choose: (chosen: readonly string[]) => void;
  readonly problem: string | undefined;
}

/** The types of events to choose from, the usual ones first. Those that are chosen stay in sight. */
function Events({ chosen, choose, problem }: EventsProps) {
  const { data: known = USUAL } = useQuery(webhookEventsQuery);
  const [words, setWords] = useState('');
  const listed = known.toSorted((a, b) => Number(USUAL.includes(b)) - Number(USUAL.includes(a)) || a.localeCompare(b));
  const shown = listed.filter((type) => chosen.includes(type) || type.includes(words.toLowerCase()));
  return (
    <>
      <TextField
        label="Find events"
        hint={`${chosen.length} chosen`}
        problem={problem}
        type="search"
        value={words}
        onChange={setWords}
      />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable with the keyboard */}
      <fieldset className={styles.choices} aria-label="Events" tabIndex={0}>
        {shown.map((type) => (
          <label key={type}>
            <input
              type="checkbox"
              checked={chosen.includes(type)}
              onChange={({ target }) =>
                choose(target.checked ? [...chosen, type] : chosen.filter((each) => each !== type))
              }
            />
            {type}
          </label>
        ))}
      </fieldset>
    </>
  );
}
