import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { isObject } from '../../src/protocol/format/json.ts';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import { client } from '../api/client.ts';
import { Button } from '../parts/Button.tsx';
import { Dialog } from '../parts/Dialog.tsx';
import { Editor } from '../parts/Editor.tsx';
import { explain } from '../parts/explain.ts';
import { Field } from '../parts/Field.tsx';
import styles from './StartRun.module.css';

const FORM = 'fork-run';

interface ForkProps {
  readonly run: RunSnapshot;
  /** The first event that is not taken over. */
  readonly fromSeq?: number;
  readonly onClose: () => void;
}

/** Begins a run with the history of another: to go on differently, or to check that it would go the same way. */
export function ForkRun({ run, fromSeq = 0, onClose }: ForkProps) {
  const { runId, inputs = {}, workflowVersion } = run;
  const [text, setText] = useState(() => JSON.stringify(inputs, null, 2));
  const navigate = useNavigate();
  const fork = useMutation({
    mutationFn: (form: FormData) => {
      const mode = form.get('mode') === 'replay' ? 'replay' : 'branch';
      const seq = Number(form.get('fromSeq') ?? 0);
      const version = Number(form.get('version'));
      const given: unknown = JSON.parse(text);
      if (!isObject(given)) throw new Error('The inputs must be a JSON object.');
      const overlay = {
        ...(JSON.stringify(given) === JSON.stringify(inputs) ? {} : { inputs: given }),
        ...(version === workflowVersion || version === 0 ? {} : { workflowVersion: version }),
      };
      const runOptionsOverlay = mode === 'branch' && Object.keys(overlay).length > 0 ? overlay : undefined;
      return client.forkRun(runId, { mode, fromSeq: seq, ...(runOptionsOverlay ? { runOptionsOverlay } : {}) });
    },
    onSuccess: ({ runId: forked }) => {
      onClose();
      void navigate({ to: '/runs/$runId', params: { runId: forked }, search: {} });
    },
  });
  const footer = (
    <>
      <Button onClick={onClose}>Close</Button>
      <Button kind="main" type="submit" form={FORM} isBusy={fork.isPending}>
        Fork
      </Button>
    </>
  );
  return (
    <Dialog title="Fork this run" isOpen isSide onClose={onClose} footer={footer}>
      <form
        id={FORM}
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          fork.mutate(new FormData(event.currentTarget));
        }}
      >
        <Field
          label="Kind"
          hint="A branch continues as a new run, with real effects. A replay repeats what was recorded, without effects."
        >
          {(field) => (
            <select {...field} name="mode">
              <option value="branch">Branch</option>
              <option value="replay">Replay</option>
            </select>
          )}
        </Field>
        <Field label="From event" hint="The first event that is not copied; 0 starts from the beginning.">
          {(field) => <input {...field} name="fromSeq" type="number" min={0} defaultValue={fromSeq} />}
        </Field>
        <Field label="Workflow version">
          {(field) => <input {...field} name="version" type="number" min={1} defaultValue={workflowVersion} />}
        </Field>
        <div>
          <h3 id="fork-inputs">Inputs of the branch</h3>
          <Editor value={text} onChange={setText} label="Inputs of the branch" />
        </div>
        {fork.isError && (
          <p className={styles.problem} role="alert">
            {explain(fork.error).text}
          </p>
        )}
      </form>
    </Dialog>
  );
}
