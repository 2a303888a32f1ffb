import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { variablesOf } from '../../src/engine/models/prompt-text.ts';
import type { PromptTemplate } from '../../src/protocol/ai/prompts.ts';
import { modelsQuery, promptVersionsQuery, versionOfPromptQuery } from '../api/prompts.ts';
import { useMay } from '../api/session.ts';
import { tryNode } from '../api/trials.ts';
import { Button } from '../parts/Button.tsx';
import { Diff } from '../parts/Diff.tsx';
import { explain } from '../parts/explain.ts';
import { AreaField, ChoiceField } from '../parts/Fields.tsx';
import { FormProblem } from '../parts/FormDialog.tsx';
import { Panel } from '../parts/Panel.tsx';
import { TrialResult } from '../parts/TrialResult.tsx';
import { exactly } from '../parts/time.ts';
import { filledIn, type PromptDraft } from './draft.ts';
import styles from './PromptPage.module.css';

interface PlaygroundProps {
  readonly saved: PromptTemplate | undefined;
  readonly draft: PromptDraft;
}

/** What both sides of a comparison share. */
interface Setting {
  readonly values: Readonly<Record<string, string>>;
  /** What is asked, for prompts that say how to answer. */
  readonly question: string;
  readonly provider: string;
  readonly model: string;
}

/** Sends the text to a model as it stands, beside a version that was saved. */
export function Playground({ saved, draft }: PlaygroundProps) {
  const may = useMay();
  const [setting, change] = useState<Setting>({ values: {}, question: '', provider: '', model: '' });
  const [version, setVersion] = useState(saved?.version ?? '');
  const { data: versions = [] } = useQuery({
    ...promptVersionsQuery(draft.templateId),
    enabled: saved !== undefined,
  });
  const older = useQuery({
    ...versionOfPromptQuery(draft.templateId, version),
    enabled: saved !== undefined && version !== '' && version !== saved.version,
  });
  const before = saved && (version === saved.version ? saved : older.data);
  const mine = useMutation({ mutationFn: () => ask(draft, setting) });
  const theirs = useMutation({ mutationFn: (template: PromptTemplate) => ask(template, setting) });
  if (!may('workflows:write') || !may('runs:create')) {
    return (
      <Panel title="Try it">
        <p className="quiet">Editors can send it to a model here.</p>
      </Panel>
    );
  }
  const isBusy = mine.isPending || theirs.isPending;
  const isChanged = before !== undefined && before.text !== draft.text;
  return (
    <Panel title="Try it">
      <div className={styles.form}>
        <SettingFields draft={draft} setting={setting} change={(part) => change({ ...setting, ...part })} />
        <div className={styles.actions}>
          <Button isBusy={isBusy} onClick={() => mine.mutate()}>
            Ask
          </Button>
          {before && (
            <Button
              isBusy={isBusy}
              onClick={() => {
                mine.mutate();
                theirs.mutate(before);
              }}
            >
              Ask both
            </Button>
          )}
        </div>
        <div className={styles.answers}>
          <Answer title="As it is here" asked={mine} />
          {before && <Answer title={`Version ${before.version}`} asked={theirs} />}
        </div>
        {saved && (
          <ChoiceField
            label="Compared with version"
            problem={older.error ? explain(older.error).text : undefined}
            value={version}
            onChange={setVersion}
            choices={versions.map((each) => [each.version, `${each.version}, ${exactly(each.createdAt)}`])}
          />
        )}
        {before && isChanged && (
          <Diff before={before.text} after={draft.text} labels={[`version ${before.version}`, 'as it is here']} />
        )}
      </div>
    </Panel>
  );
}

/** Asks a model in a run of one node, so that it is counted and can be looked at. */
async function ask(template: PromptDraft, { values, question, provider, model }: Setting) {
  const filled = filledIn(template, values);
  if ('problem' in filled) throw new Error(filled.problem);
  const isQuestion = template.kind === 'user';
  const messages = [
    { role: isQuestion ? 'user' : 'system', content: filled.text },
    ...(isQuestion || question === '' ? [] : [{ role: 'user', content: question }]),
  ];
  const config = { ...(provider !== '' && { provider }), ...(model !== '' && { model }) };
  return tryNode({ typeId: 'core.ai.callPrompt', config, inputs: { messages } });
}

interface SettingProps {
  readonly draft: PromptDraft;
  readonly setting: Setting;
  readonly change: (part: Partial<Setting>) => void;
}

function SettingFields({ draft, setting, change }: SettingProps) {
  const may = useMay();
  const { data: catalog = [] } = useQuery({ ...modelsQuery, enabled: may('manifest:read') });
  const { values, question, provider, model } = setting;
  const models = catalog.find((each) => each.provider === provider)?.models ?? [];
  return (
    <>
      {variablesOf(draft).map(({ name, type, required, description }) => (
        <AreaField
          key={name}
          label={required || type === undefined ? name : `${name} (optional)`}
          hint={type === undefined || type === 'string' ? description : `${type}, as JSON. ${description ?? ''}`}
          rows={1}
          value={values[name] ?? ''}
          onChange={(value) => change({ values: { ...values, [name]: value } })}
        />
      ))}
      {draft.kind !== 'user' && (
        <AreaField
          label="What is asked"
          hint="The prompt says how to answer this."
          rows={2}
          value={question}
          onChange={(text) => change({ question: text })}
        />
      )}
      <div className={styles.pair}>
        <ChoiceField
          label="Provider"
          value={provider}
          onChange={(value) => change({ provider: value, model: '' })}
          choices={[['', 'as the host chooses'], ...catalog.map((each) => [each.provider, each.provider] as const)]}
        />
        <ChoiceField
          label="Model"
          hint={provider === '' ? 'Choose a provider to choose a model.' : undefined}
          value={model}
          onChange={(value) => change({ model: value })}
          choices={[['', 'as the provider chooses'], ...models.map((name) => [name, name] as const)]}
        />
      </div>
    </>
  );
}

interface Asked {
  readonly isPending: boolean;
  readonly error: Error | null;
  readonly data: Awaited<ReturnType<typeof ask>> | undefined;
}

function Answer({ title, asked: { isPending, error, data } }: { readonly title: string; readonly asked: Asked }) {
  if (!isPending && !error && !data) return null;
  return (
    <section className={styles.answer} aria-label={title}>
      <h3>{title}</h3>
      {isPending ? (
        <p className="quiet" role="status">
          Asking …
        </p>
      ) : error ? (
        <FormProblem text={explain(error).text} />
      ) : (
        data && <TrialResult run={data} />
      )}
    </section>
  );
}
