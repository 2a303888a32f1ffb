import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useDeferredValue, useMemo, useState } from 'react';
import { isObject, valueAt } from '../../src/protocol/format/json.ts';
import type { Proposal } from '../../src/protocol/learning/proposals.ts';
import { client } from '../api/client.ts';
import { openApiQuery } from '../api/proposals.ts';
import { Button } from '../parts/Button.tsx';
import { Editor } from '../parts/Editor.tsx';
import { Field } from '../parts/Field.tsx';
import { Panel } from '../parts/Panel.tsx';
import { explain } from '../parts/States.tsx';
import { problemsIn, type SchemaProblem, schemaIn } from '../parts/schema.ts';
import { say } from '../parts/toasts.tsx';
import { KINDS } from './kinds.ts';
import styles from './ProposalPage.module.css';

interface ReviseProps {
  readonly proposal: Proposal;
  /** The artifact as it is stored. */
  readonly text: string;
  readonly onDone: () => void;
}

/** Changes a proposal. What would be refused is said while it is typed; nothing is installed. */
export function Revise({ proposal, text, onDone }: ReviseProps) {
  const [draft, setDraft] = useState({
    artifact: text,
    title: proposal.title ?? '',
    rationale: proposal.rationale ?? '',
    note: '',
  });
  const set = (name: keyof typeof draft) => (value: string) => setDraft((old) => ({ ...old, [name]: value }));
  const cache = useQueryClient();
  const read = useArtifact(useDeferredValue(draft.artifact), KINDS[proposal.kind].schema);
  const save = useMutation({
    mutationFn: () => client.reviseProposal(proposal.id, changesIn(draft, proposal, text)),
    onSuccess: async () => {
      say('The revision is saved.');
      await cache.invalidateQueries({ queryKey: ['proposal', proposal.id] });
      onDone();
    },
  });
  const inputs = [
    ['title', 'Title', 500],
    ['rationale', 'Why', 10_000],
    ['note', 'A note for the history', 10_000],
  ] as const;
  return (
    <Panel title="Revise">
      <div className={styles.revise}>
        <div className={styles.artifact}>
          <Editor label="Artifact" value={text} onChange={set('artifact')} />
          <div role="status" className={styles.problems}>
            {read.problems.length === 0 ? (
              <p className={styles.fine}>✓ It has the shape of a {KINDS[proposal.kind].words.toLowerCase()}.</p>
            ) : (
              <ul>
                {read.problems.slice(0, 8).map(({ path, message }) => (
                  <li key={`${path} ${message}`}>
                    {path !== '' && <code>{path}</code>} {message}
                  </li>
                ))}
              </ul>
            )}
          </div>
        </div>
        <div className={styles.frame}>
          {inputs.map(([name, label, maxLength]) => (
            <Field key={name} label={label}>
              {(field) =>
                name === 'rationale' ? (
                  <textarea
                    {...field}
                    value={draft[name]}
                    onChange={({ target }) => set(name)(target.value)}
                    dir="auto"
                  />
                ) : (
                  <input
                    {...field}
                    value={draft[name]}
                    maxLength={maxLength}
                    onChange={({ target }) => set(name)(target.value)}
                    dir="auto"
                  />
                )
              }
            </Field>
          ))}
          {save.isError && (
            <p className={styles.refused} role="alert">
              {explain(save.error).text}
            </p>
          )}
          <div className={styles.actions}>
            <Button kind="main" isBusy={save.isPending} disabled={!read.isJson} onClick={() => save.mutate()}>
              Save the revision
            </Button>
            <Button onClick={onDone}>Close</Button>
          </div>
        </div>
      </div>
    </Panel>
  );
}

/** Only what changed is sent; a note alone compares the proposal with what is installed today. */
function changesIn(
  draft: Readonly<Record<'artifact' | 'title' | 'rationale' | 'note', string>>,
  old: Proposal,
  text: string,
) {
  const { artifact, title, rationale, note } = draft;
  const changes = {
    ...(artifact === text ? {} : { artifact: JSON.parse(artifact) as Record<string, unknown> }),
    ...(title === (old.title ?? '') ? {} : { title }),
    ...(rationale === (old.rationale ?? '') ? {} : { rationale }),
  };
  const isSame = Object.keys(changes).length === 0;
  return { ...changes, ...(note.trim() === '' && !isSame ? {} : { note: note.trim() || 'Compared again.' }) };
}

/** What the text says, and what is wrong with it by the API document of the host. */
function useArtifact(text: string, schemaName: string): { isJson: boolean; problems: readonly SchemaProblem[] } {
  const { data } = useQuery(openApiQuery);
  return useMemo(() => {
    let artifact: unknown;
    try {
      artifact = JSON.parse(text);
    } catch (error) {
      return { isJson: false, problems: [{ path: '', message: error instanceof Error ? error.message : 'No JSON.' }] };
    }
    if (!isObject(artifact)) return { isJson: false, problems: [{ path: '', message: 'This must be an object.' }] };
    const named = (name: string) => schemaIn(valueAt(data, `components.schemas.${name}`));
    const resolve = (ref: string) => named(ref.slice(ref.lastIndexOf('/') + 1));
    return { isJson: true, problems: problemsIn(named(schemaName), artifact, resolve) };
  }, [text, data, schemaName]);
}
