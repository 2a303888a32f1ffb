import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { client } from '../api/client.ts';
import { annotationsQuery } from '../api/runs.ts';
import { Editor } from '../parts/Editor.tsx';
import { explain } from '../parts/explain.ts';
import { AreaField, ChoiceField, TextField } from '../parts/Fields.tsx';
import { FormDialog } from '../parts/FormDialog.tsx';
import { say } from '../parts/toasts.tsx';
import { partsOf, readCorrection } from './correction.ts';
import styles from './Feedback.module.css';

const NOTE_CHARACTERS_MAX = 2_000;
/** The field is as high as its text, within these bounds, and has room for more lines. */
const ROWS_MIN = 6;
const ROWS_MAX = 18;
const ROWS_SPARE = 2;

interface CorrectProps {
  readonly runId: string;
  /** The node whose output it is; the whole run without one. */
  readonly nodeId: string | undefined;
  readonly output: unknown;
  readonly onClose: () => void;
}

/** Says what an output should have been: the output itself, edited. */
export function CorrectOutput({ runId, nodeId, output, onClose }: CorrectProps) {
  const [parts] = useState(() => partsOf(output));
  const [name, setName] = useState(parts[0]!.name);
  const part = parts.find((each) => each.name === name) ?? parts[0]!;
  const [text, setText] = useState(part.text);
  const [note, setNote] = useState('');
  const [problem, setProblem] = useState<string>();
  const cache = useQueryClient();
  const send = useMutation({
    mutationFn: (correction: string) =>
      client.createAnnotation(runId, {
        signal: { kind: 'correction', correction },
        ...(nodeId === undefined ? {} : { target: { nodeId } }),
        ...(note.trim() === '' ? {} : { note: note.trim() }),
      }),
    onSuccess: () => {
      say('The correction is recorded.');
      void cache.invalidateQueries({ queryKey: annotationsQuery(runId).queryKey });
      onClose();
    },
  });
  const choose = (chosen: string): void => {
    setName(chosen);
    setText(parts.find((each) => each.name === chosen)?.text ?? '');
    setProblem(undefined);
  };
  const submit = (): void => {
    const read = readCorrection(part, text);
    setProblem('problem' in read ? read.problem : undefined);
    if ('correction' in read) send.mutate(read.correction);
  };
  return (
    <FormDialog
      title={nodeId === undefined ? 'Correct the outputs of the run' : `Correct the output of ${nodeId}`}
      action="Record the correction"
      isBusy={send.isPending}
      noValidate
      problem={problem ?? (send.isError ? explain(send.error).text : undefined)}
      onSubmit={submit}
      onClose={onClose}
    >
      <p className="quiet">
        The run stays as it is. Corrections are counted under Quality, and better prompts are drafted from them.
      </p>
      {parts.length > 1 && (
        <ChoiceField
          label="What to correct"
          value={name}
          onChange={choose}
          choices={parts.map((each) => [each.name, each.isJson ? `${each.name}, as JSON` : each.name] as const)}
        />
      )}
      {part.isJson ? (
        <div>
          <h3 className={styles.label}>Correct output</h3>
          <Editor key={name} value={text} onChange={setText} label="Correct output" />
        </div>
      ) : (
        <AreaField
          key={name}
          label={part.text === '' ? 'What should be different' : 'Correct output'}
          hint={
            part.text === '' ? 'Write it as an instruction: “Say hello first.”' : 'Edit the text until it is right.'
          }
          rows={rowsFor(part.text)}
          value={text}
          onChange={setText}
        />
      )}
      <TextField label="Why (optional)" maxLength={NOTE_CHARACTERS_MAX} value={note} onChange={setNote} />
    </FormDialog>
  );
}

function rowsFor(text: string): number {
  return Math.min(ROWS_MAX, Math.max(ROWS_MIN, text.split('\n').length + ROWS_SPARE));
}
