import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useBlocker, useNavigate } from '@tanstack/react-router';
import { Braces, Play, Redo2, Save, Undo2 } from 'lucide-react';
import { lazy, Suspense, useMemo, useRef, useState } from 'react';
import { RefusedError } from '../../src/client/index.ts';
import { client } from '../api/client.ts';
import { isBlocked } from '../api/queries.ts';
import { useMay } from '../api/session.ts';
import { nodeTypesQuery, versionQuery, workflowQuery, workflowsQuery } from '../api/workflows.ts';
import { Button } from '../parts/Button.tsx';
import { Editor } from '../parts/Editor.tsx';
import { useKeys } from '../parts/keys.ts';
import { loaded } from '../parts/loaded.ts';
import { Empty, Problem, Skeleton } from '../parts/States.tsx';
import { complain, say } from '../parts/toasts.tsx';
import { StartRun } from '../runs/StartRun.tsx';
import { Catalogue } from './Catalogue.tsx';
import { addNode, type Draft, EMPTY_DRAFT, type Selection } from './draft.ts';
import styles from './EditPage.module.css';
import { Inspector } from './Inspector.tsx';
import { type EditedDraft, useDraft } from './use-draft.ts';
import { type Finding, type Findings, refusedFields, useProblems } from './use-problems.ts';

const Canvas = lazy(() => loaded(() => import('./Canvas.tsx')).then((module) => ({ default: module.Canvas })));
const route = getRouteApi('/shell/workflows/$workflowId/edit');

/** Edits a workflow, beginning with its current version or an older one. */
export function EditPage() {
  const { workflowId } = route.useParams();
  const { from } = route.useSearch();
  const may = useMay();
  const { data, error } = useQuery(workflowQuery(workflowId));
  const older = useQuery({ ...versionQuery(workflowId, from ?? 0), enabled: from !== undefined });
  const { data: all } = useQuery(workflowsQuery);
  if (!may('workflows:write')) return <MayNot />;
  if (error || older.error) return <Problem error={error ?? older.error} />;
  const first = from === undefined ? data : older.data;
  if (!first) return <Skeleton lines={8} />;
  const isShared = all?.find(({ id }) => id === workflowId)?.shared === true;
  return <WorkflowEditor key={`${workflowId} ${from}`} first={first} isSaved isShared={isShared} />;
}

/** Makes a workflow. */
export function NewPage() {
  const may = useMay();
  return may('workflows:write') ? <WorkflowEditor first={EMPTY_DRAFT} isSaved={false} isShared={false} /> : <MayNot />;
}

function MayNot() {
  return (
    <Empty title="You may not edit workflows">
      It needs the scope workflows:write, which editors and higher roles have.
    </Empty>
  );
}

interface EditorProps {
  readonly first: Draft;
  readonly isSaved: boolean;
  readonly isShared: boolean;
}

/** The catalogue, the graph and the form of what is selected. */
function WorkflowEditor({ first, isSaved, isShared }: EditorProps) {
  const edited = useDraft(first);
  const { draft, change } = edited;
  const [selection, select] = useState<Selection>();
  const [isText, showText] = useState(false);
  const [isStarting, setStarting] = useState(false);
  const types = useQuery(nodeTypesQuery);
  const known = types.data ?? [];
  const findings = useProblems(draft, known);
  const saving = useSave(edited, isSaved);
  const problems = useMemo(() => firstProblems(findings.found), [findings.found]);
  const add = (typeId: string): void => {
    const after = selection && 'node' in selection ? selection.node : undefined;
    const added = addNode(draft, typeId, after);
    change(() => added.draft);
    select({ node: added.nodeId });
  };
  useKeys('Editor', [
    { keys: 'u', label: 'Undo', act: edited.undo },
    { keys: 'r', label: 'Redo', act: edited.redo },
    { keys: 'Escape', label: 'Select nothing', act: () => select(undefined) },
  ]);
  if (isBlocked(types)) return <Problem error={types.error} onRetry={() => void types.refetch()} />;
  const inspector = (
    <Inspector
      draft={draft}
      types={known}
      selection={selection}
      onSelect={select}
      onChange={change}
      findings={findings.found}
      isSaved={isSaved}
    />
  );
  return (
    <div className={styles.page}>
      <EditorHead
        edited={edited}
        findings={findings}
        isShared={isShared}
        isText={isText}
        onText={() => showText(!isText)}
        isSaving={saving.isPending}
        onSave={() => saving.mutate({})}
        onRun={() => saving.mutate({ afterwards: () => setStarting(true) })}
      />
      <div className={styles.work}>
        <Catalogue types={known} onAdd={add} />
        <div className={styles.canvas}>
          {isText ? (
            <DefinitionText draft={draft} onChange={change} />
          ) : draft.nodes.length === 0 ? (
            <Empty title="An empty workflow">Add a node from the catalogue: click it, or drag it here.</Empty>
          ) : (
            <Suspense fallback={<Skeleton />}>
              <Canvas
                draft={draft}
                types={known}
                selection={selection}
                onSelect={select}
                onChange={change}
                onDropType={add}
                problems={problems}
              />
            </Suspense>
          )}
        </div>
        {inspector}
      </div>
      <ProblemList findings={findings} onSelect={select} />
      {isStarting && <StartRun workflowId={draft.id} onClose={() => setStarting(false)} />}
    </div>
  );
}

function firstProblems(found: readonly Finding[]): ReadonlyMap<string, string> {
  return new Map(
    found
      .filter(({ isWarning }) => !isWarning)
      .toReversed()
      .flatMap(({ nodeId, message }) => (nodeId === undefined ? [] : [[nodeId, message] as const])),
  );
}

interface SaveOptions {
  /** What to do once it is saved. */
  readonly afterwards?: () => void;
}

/** Saves the draft as a new version; the host refuses what it would not run. */
function useSave({ draft, markSaved, isChanged }: EditedDraft, isSaved: boolean) {
  const cache = useQueryClient();
  const navigate = useNavigate();
  const isLeaving = useRef(false);
  useBlocker({
    shouldBlockFn: () => isChanged && !isLeaving.current && !confirm('Leave without saving?'),
    enableBeforeUnload: () => isChanged && !isLeaving.current,
  });
  return useMutation({
    mutationFn: (_options: SaveOptions) =>
      isSaved ? client.replaceWorkflow(draft.id, draft) : client.registerWorkflow(draft),
    onSuccess: async ({ id, registeredVersion }, { afterwards }) => {
      markSaved(draft);
      say(`Saved as version ${registeredVersion}.`);
      await Promise.all(
        ['workflows', 'workflow', 'workflow-versions'].map((name) => cache.invalidateQueries({ queryKey: [name] })),
      );
      if (afterwards) afterwards();
      else {
        isLeaving.current = true;
        await navigate({ to: '/workflows/$workflowId', params: { workflowId: id }, search: {} });
      }
    },
    onError: (error) => {
      const [first] = error instanceof RefusedError ? refusedFields(error) : [];
      complain(first ? new Error(`${first.path} ${first.message}`.trim()) : error);
    },
  });
}

interface HeadProps {
  readonly edited: EditedDraft;
  readonly findings: Findings;
  readonly isShared: boolean;
  readonly isText: boolean;
  readonly onText: () => void;
  readonly isSaving: boolean;
  readonly onSave: () => void;
  readonly onRun: () => void;
}

function EditorHead({ edited, findings, isShared, isText, onText, isSaving, onSave, onRun }: HeadProps) {
  const may = useMay();
  const { draft, isChanged, canUndo, canRedo, undo, redo } = edited;
  const isWrong = findings.found.some(({ isWarning }) => !isWarning);
  return (
    <header className={styles.head}>
      <div className={styles.title}>
        <Link to="/workflows">Workflows</Link>
        <h1 dir="auto">{draft.name === '' ? 'New workflow' : draft.name}</h1>
        {isShared && <span className="quiet">Saving creates your own version; others keep the one of the host.</span>}
      </div>
      <div className={styles.actions}>
        <Button kind="quiet" icon={<Undo2 />} aria-label="Undo" title="Undo (u)" disabled={!canUndo} onClick={undo} />
        <Button kind="quiet" icon={<Redo2 />} aria-label="Redo" title="Redo (r)" disabled={!canRedo} onClick={redo} />
        <Button icon={<Braces />} aria-pressed={isText} onClick={onText}>
          {isText ? 'Graph' : 'JSON'}
        </Button>
        {may('runs:create') && (
          <Button
            icon={<Play />}
            disabled={isWrong}
            isBusy={isSaving}
            onClick={onRun}
            title="Saves a version and opens its start form"
          >
            Save and run
          </Button>
        )}
        <Button kind="main" icon={<Save />} disabled={isWrong || !isChanged} isBusy={isSaving} onClick={onSave}>
          Save
        </Button>
      </div>
    </header>
  );
}

/** The whole definition as text; what is no definition yet changes nothing. */
function DefinitionText({ draft, onChange }: { readonly draft: Draft; readonly onChange: EditedDraft['change'] }) {
  const [problem, setProblem] = useState<string>();
  const read = (text: string): void => {
    try {
      const value: Partial<Draft> = JSON.parse(text);
      if (!Array.isArray(value.nodes) || !Array.isArray(value.edges)) throw new Error('it needs nodes and edges');
      onChange((old) => ({ ...old, ...value }));
      setProblem(undefined);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <div className={styles.text}>
      {problem !== undefined && (
        <p role="alert" className={styles.broken}>
          Not taken over yet: {problem}
        </p>
      )}
      <Editor label="Definition" value={JSON.stringify(draft, null, 2)} onChange={read} />
    </div>
  );
}

function ProblemList({
  findings: { found, isAccepted },
  onSelect,
}: {
  readonly findings: Findings;
  readonly onSelect: (selection: Selection) => void;
}) {
  return (
    <section className={styles.problems} aria-label="Problems" aria-live="polite">
      {found.length === 0 && (
        <p className={styles.fine} data-accepted={isAccepted || undefined}>
          {isAccepted ? '✓ The host would accept this definition.' : 'Checking …'}
        </p>
      )}
      <ul>
        {found.map(({ path, message, nodeId, isWarning }) => (
          <li key={`${path} ${message}`} data-warning={isWarning || undefined}>
            <span aria-hidden="true">{isWarning ? '◐' : '✕'}</span>
            <span className="hidden">{isWarning ? 'Warning:' : 'Problem:'}</span>
            {nodeId === undefined ? (
              <code>{path}</code>
            ) : (
              <button type="button" onClick={() => onSelect({ node: nodeId })}>
                {path}
              </button>
            )}
            <span dir="auto">{message}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
