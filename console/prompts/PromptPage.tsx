import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { PromptTemplate } from '../../src/protocol/ai/prompts.ts';
import { client } from '../api/client.ts';
import { promptQuery } from '../api/prompts.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { AreaField, ChoiceField, TextField } from '../parts/Fields.tsx';
import { FormProblem } from '../parts/FormDialog.tsx';
import { problemsOf } from '../parts/field-problems.ts';
import { Panel } from '../parts/Panel.tsx';
import { Empty, Problem, Skeleton } from '../parts/States.tsx';
import { say } from '../parts/toasts.tsx';
import { draftOf, EMPTY_PROMPT, KINDS, type PromptDraft, templateOf } from './draft.ts';
import { Playground } from './Playground.tsx';
import styles from './PromptPage.module.css';

const route = getRouteApi('/shell/prompts/$templateId');

/** A prompt: its text, and what a model makes of it. */
export function PromptPage() {
  const { templateId } = route.useParams();
  const { data, error, refetch } = useQuery(promptQuery(templateId));
  if (error) return <Problem error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton lines={8} />;
  return <PromptEditor key={`${templateId}@${data.version}`} saved={data} />;
}

/** Makes a prompt. */
export function NewPromptPage() {
  const may = useMay();
  if (may('prompts:write')) return <PromptEditor saved={undefined} />;
  return (
    <Empty title="You may not write prompts">Editing prompts needs the scope prompts:write, which editors have.</Empty>
  );
}

function PromptEditor({ saved }: { readonly saved: PromptTemplate | undefined }) {
  const may = useMay();
  const [draft, setDraft] = useState<PromptDraft>(() => (saved ? draftOf(saved) : EMPTY_PROMPT));
  const set = (change: Partial<PromptDraft>): void => setDraft({ ...draft, ...change });
  // A prompt of a pack belongs to the pack.
  const isOwn = saved === undefined || saved.meta?.packName === undefined;
  const canSave = may('prompts:write') && isOwn;
  return (
    <div className={styles.page}>
      <header className={styles.head}>
        <h1 dir="auto">{saved ? (saved.name ?? saved.templateId) : 'New prompt'}</h1>
        {saved && (
          <span className="quiet">
            <code>
              {saved.templateId}@{saved.version}
            </code>
            {saved.meta?.packName && ` of the pack ${saved.meta.packName}`}
          </span>
        )}
        <Link to="/operations" search={{ section: 'prompts' }}>
          All prompts
        </Link>
      </header>
      <div className={styles.columns}>
        <PromptForm saved={saved} draft={draft} set={set} canSave={canSave} />
        <Playground saved={saved} draft={draft} />
      </div>
    </div>
  );
}

interface FormProps {
  readonly saved: PromptTemplate | undefined;
  readonly draft: PromptDraft;
  readonly set: (change: Partial<PromptDraft>) => void;
  readonly canSave: boolean;
}

function PromptForm({ saved, draft, set, canSave }: FormProps) {
  const save = useSave(saved);
  const problems = problemsOf(save.error, ['templateId', 'version', 'text', 'kind', 'name', 'description']);
  return (
    <Panel title="Text">
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate(templateOf(draft));
        }}
      >
        {!saved && (
          <TextField
            label="Id"
            hint="Lower case, as nodes refer to it: prompt:support.reply"
            problem={problems.fields.templateId}
            required
            spellCheck={false}
            value={draft.templateId}
            onChange={(templateId) => set({ templateId })}
          />
        )}
        <PromptFields draft={draft} set={set} problems={problems.fields} />
        <FormProblem text={problems.rest} />
        {canSave ? (
          <div>
            <Button kind="main" type="submit" isBusy={save.isPending}>
              Save as {draft.version}
            </Button>
          </div>
        ) : (
          <p className="quiet">You can change it here to try it, but not save it.</p>
        )}
      </form>
    </Panel>
  );
}

interface FieldsProps extends Pick<FormProps, 'draft' | 'set'> {
  readonly problems: Readonly<Record<string, string>>;
}

function PromptFields({ draft, set, problems }: FieldsProps) {
  return (
    <>
      <AreaField
        label="Prompt"
        hint="{{name}} stands for a variable."
        problem={problems.text}
        required
        rows={14}
        value={draft.text}
        onChange={(text) => set({ text })}
      />
      <div className={styles.pair}>
        <ChoiceField
          label="Kind"
          problem={problems.kind}
          value={draft.kind}
          onChange={(kind) => set({ kind: kind as PromptTemplate['kind'] })}
          choices={KINDS}
        />
        <TextField
          label="Version to save"
          problem={problems.version}
          required
          spellCheck={false}
          value={draft.version}
          onChange={(version) => set({ version })}
        />
      </div>
      <TextField
        label="Name (optional)"
        problem={problems.name}
        maxLength={200}
        value={draft.name ?? ''}
        onChange={(name) => set({ name })}
      />
      <TextField
        label="About (optional)"
        problem={problems.description}
        maxLength={2_000}
        value={draft.description ?? ''}
        onChange={(description) => set({ description })}
      />
    </>
  );
}

function useSave(saved: PromptTemplate | undefined) {
  const cache = useQueryClient();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: (template: PromptTemplate) =>
      saved ? client.updatePromptTemplate(saved.templateId, template, {}) : client.createPromptTemplate(template),
    onSuccess: async ({ templateId, version }) => {
      say(`Version ${version} is saved. Runs that used an earlier one keep it.`);
      await cache.invalidateQueries({ queryKey: ['prompts'] });
      await cache.invalidateQueries({ queryKey: ['prompt', templateId] });
      if (!saved) await navigate({ to: '/prompts/$templateId', params: { templateId } });
    },
  });
}
