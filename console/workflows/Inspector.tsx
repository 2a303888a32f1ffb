import { Play, Trash2 } from 'lucide-react';
import { useState } from 'react';
import {
  CONDITION_TYPES,
  type EdgeCondition,
  type NodeTypeSummary,
  TRIGGER_RULES,
  type WorkflowEdge,
  type WorkflowNode,
} from '../../src/protocol/running/workflows.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { Field } from '../parts/Field.tsx';
import { ConfigForm, JsonField } from './ConfigForm.tsx';
import {
  changeEdge,
  changeNode,
  connect,
  type Draft,
  removeEdge,
  removeNode,
  renameNode,
  type Selection,
} from './draft.ts';
import { ExpressionField } from './ExpressionField.tsx';
import type { KnownName } from './expression-editor.ts';
import styles from './Inspector.module.css';
import { useKnownValues } from './known-values.ts';
import { Ports } from './Ports.tsx';
import { TryNode } from './TryNode.tsx';
import type { Finding } from './use-problems.ts';
import { WorkflowForm } from './WorkflowForm.tsx';

interface InspectorProps {
  readonly draft: Draft;
  readonly types: readonly NodeTypeSummary[];
  readonly selection: Selection;
  readonly onSelect: (selection: Selection) => void;
  readonly onChange: (how: (draft: Draft) => Draft) => void;
  readonly findings: readonly Finding[];
  /** It has been saved before, so its id is fixed. */
  readonly isSaved: boolean;
}

/** The form for what is selected: a node, an edge, or the workflow itself. */
export function Inspector(props: InspectorProps) {
  const { draft, selection } = props;
  const node = selection && 'node' in selection ? draft.nodes.find(({ id }) => id === selection.node) : undefined;
  const edge = selection && 'edge' in selection ? draft.edges.find(({ id }) => id === selection.edge) : undefined;
  return (
    <section className={styles.inspector} aria-label="Properties">
      {node ? (
        <NodeForm key={node.id} {...props} node={node} />
      ) : edge ? (
        <EdgeForm key={edge.id} {...props} edge={edge} />
      ) : (
        <WorkflowForm draft={draft} onChange={props.onChange} isSaved={props.isSaved} />
      )}
    </section>
  );
}

/** What expressions of a workflow may name. */
export function knownNames({ nodes, variables }: Draft, types: readonly NodeTypeSummary[]): KnownName[] {
  return [
    ...variables.map(({ name, type }) => ({ path: `variables.${name}`, detail: type })),
    ...nodes.flatMap(({ id, typeId }) =>
      (types.find((type) => type.typeId === typeId)?.outputs ?? []).map((output) => ({
        path: /^[a-zA-Z_]\w*$/.test(id) ? `nodes.${id}.${output}` : `nodes["${id}"].${output}`,
        detail: 'output',
      })),
    ),
  ];
}

function NodeForm({
  node,
  draft,
  types,
  findings,
  onChange,
  onSelect,
}: InspectorProps & { readonly node: WorkflowNode }) {
  const may = useMay();
  const [isTrying, setTrying] = useState(false);
  const type = types.find(({ typeId }) => typeId === node.typeId);
  const known = useKnownValues(node.typeId, node.config);
  const change = (part: Partial<WorkflowNode>): void =>
    onChange((old) => changeNode(old, node.id, (each) => ({ ...each, ...part })));
  const index = draft.nodes.indexOf(node);
  const mine = findings.filter(({ nodeId, path }) => nodeId === node.id || path.startsWith(`nodes[${index}]`));
  const problems = new Map(
    mine.flatMap(({ path, message }) => {
      const [, key] = /^nodes\[\d+\]\.config\.([^.]+)/.exec(path) ?? [];
      return key === undefined ? [] : [[key, message] as const];
    }),
  );
  return (
    <div className={styles.form}>
      <header className={styles.head}>
        <h2>Node</h2>
        <Button
          kind="quiet"
          icon={<Trash2 />}
          aria-label={`Remove ${node.name}`}
          title="Remove (Delete)"
          onClick={() => {
            onSelect(undefined);
            onChange((old) => removeNode(old, node.id));
          }}
        />
      </header>
      <p className={styles.about}>
        <code>{node.typeId}</code>
        {type?.description && <span>{type.description}</span>}
      </p>
      {mine.length > 0 && (
        <ul className={styles.problems} aria-label="Problems of this node">
          {mine.map(({ path, message, isWarning }) => (
            <li key={`${path} ${message}`} data-warning={isWarning || undefined}>
              {message}
            </li>
          ))}
        </ul>
      )}
      <Field label="Name">
        {(field) => (
          <input {...field} dir="auto" value={node.name} onChange={({ target }) => change({ name: target.value })} />
        )}
      </Field>
      <IdField node={node} draft={draft} onChange={onChange} onSelect={onSelect} />
      <fieldset className={styles.group}>
        <legend>Config</legend>
        <ConfigForm
          schema={type?.config ?? {}}
          config={node.config}
          problems={problems}
          known={known}
          onChange={(config) => change({ config })}
        />
      </fieldset>
      <Ports
        node={node}
        draft={draft}
        types={types}
        names={knownNames(draft, types)}
        onChange={(inputs) => change({ inputs })}
      />
      {may('runs:create') && (
        <div>
          <Button icon={<Play />} onClick={() => setTrying(true)}>
            Try this node
          </Button>
        </div>
      )}
      {isTrying && <TryNode node={node} onClose={() => setTrying(false)} />}
      <Field label="Connect to" hint="The other node waits for this one.">
        {(field) => (
          <select {...field} value="" onChange={({ target }) => onChange((old) => connect(old, node.id, target.value))}>
            <option value="">Choose a node …</option>
            {draft.nodes
              .filter(({ id }) => id !== node.id)
              .map(({ id, name }) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
          </select>
        )}
      </Field>
    </div>
  );
}

/** An id is changed when the field is left, because every letter would rename the node everywhere. */
function IdField({
  node,
  draft,
  onChange,
  onSelect,
}: Pick<InspectorProps, 'draft' | 'onChange' | 'onSelect'> & { readonly node: WorkflowNode }) {
  const [text, setText] = useState(node.id);
  const isTaken = text !== node.id && draft.nodes.some(({ id }) => id === text);
  const rename = (): void => {
    if (text === node.id || text === '' || isTaken) return;
    onChange((old) => renameNode(old, node.id, text));
    onSelect({ node: text });
  };
  return (
    <Field
      label="Id"
      hint="The name that expressions and connections use."
      problem={isTaken ? 'Another node has this id.' : undefined}
    >
      {(field) => (
        <input
          {...field}
          value={text}
          onChange={({ target }) => setText(target.value)}
          onBlur={rename}
          spellCheck={false}
        />
      )}
    </Field>
  );
}

const CONDITION_WORDS: Readonly<Record<EdgeCondition['type'], string>> = {
  expression: 'if an expression is true',
  equals: 'if an output equals',
  notEquals: 'if an output differs from',
  contains: 'if an output contains',
  regex: 'if an output matches a pattern',
  truthy: 'if an output is true',
  falsy: 'if an output is false',
};

function EdgeForm({ edge, draft, types, onChange, onSelect }: InspectorProps & { readonly edge: WorkflowEdge }) {
  const change = (how: (edge: WorkflowEdge) => WorkflowEdge): void => onChange((old) => changeEdge(old, edge.id, how));
  const choose = (type: string): void =>
    change(({ condition, ...rest }) => {
      const known = CONDITION_TYPES.find((each) => each === type);
      return known ? { ...rest, condition: { ...condition, type: known } } : rest;
    });
  return (
    <div className={styles.form}>
      <header className={styles.head}>
        <h2>Edge</h2>
        <Button
          kind="quiet"
          icon={<Trash2 />}
          aria-label="Remove this edge"
          title="Remove (Delete)"
          onClick={() => {
            onSelect(undefined);
            onChange((old) => removeEdge(old, edge.id));
          }}
        />
      </header>
      <p className={styles.about}>
        <code>
          {edge.sourceNodeId} → {edge.targetNodeId}
        </code>
      </p>
      <Field label="Taken">
        {(field) => (
          <select {...field} value={edge.condition?.type ?? ''} onChange={({ target }) => choose(target.value)}>
            <option value="">always</option>
            {CONDITION_TYPES.map((type) => (
              <option key={type} value={type}>
                {CONDITION_WORDS[type]}
              </option>
            ))}
          </select>
        )}
      </Field>
      {edge.condition && (
        <Condition
          condition={edge.condition}
          names={[...outputNames(draft, types, edge), ...knownNames(draft, types)]}
          onChange={(condition) => change((old) => ({ ...old, condition }))}
        />
      )}
      <Field label="Label" hint="Shown on the edge.">
        {(field) => (
          <input
            {...field}
            dir="auto"
            value={edge.label ?? ''}
            onChange={({ target }) =>
              change(({ label: _label, ...rest }) => (target.value === '' ? rest : { ...rest, label: target.value }))
            }
          />
        )}
      </Field>
      <Field label="The target starts" hint="If it has several incoming edges.">
        {(field) => (
          <select
            {...field}
            value={edge.triggerRule ?? ''}
            onChange={({ target }) =>
              change(({ triggerRule: _rule, ...rest }) => {
                const rule = TRIGGER_RULES.find((known) => known === target.value);
                return rule ? { ...rest, triggerRule: rule } : rest;
              })
            }
          >
            <option value="">as usual (all_success)</option>
            {TRIGGER_RULES.map((rule) => (
              <option key={rule}>{rule}</option>
            ))}
          </select>
        )}
      </Field>
    </div>
  );
}

function outputNames({ nodes }: Draft, types: readonly NodeTypeSummary[], { sourceNodeId }: WorkflowEdge): KnownName[] {
  const typeId = nodes.find(({ id }) => id === sourceNodeId)?.typeId;
  const outputs = types.find((type) => type.typeId === typeId)?.outputs ?? [];
  return outputs.map((name) => ({ path: `output.${name}`, detail: `of ${sourceNodeId}` }));
}

interface ConditionProps {
  readonly condition: EdgeCondition;
  readonly names: readonly KnownName[];
  readonly onChange: (condition: EdgeCondition) => void;
}

function Condition({ condition, names, onChange }: ConditionProps) {
  if (condition.type === 'expression') {
    return (
      <ExpressionField
        label="Expression"
        value={condition.expression ?? ''}
        names={names}
        onChange={(expression) => onChange({ type: 'expression', expression })}
      />
    );
  }
  const outputs = names
    .filter(({ path }) => path.startsWith('output.'))
    .map(({ path }) => path.slice('output.'.length));
  return (
    <>
      <Field label="Output" hint="A path into the outputs of the source.">
        {(field) => (
          <>
            <input
              {...field}
              list="edge-outputs"
              value={condition.left ?? ''}
              onChange={({ target }) => onChange({ ...condition, left: target.value })}
            />
            <datalist id="edge-outputs">
              {outputs.map((name) => (
                <option key={name} value={name} />
              ))}
            </datalist>
          </>
        )}
      </Field>
      {condition.type !== 'truthy' && condition.type !== 'falsy' && (
        <JsonField
          label="Value"
          hint="JSON: put text in quotes."
          value={condition.right}
          problem={undefined}
          onChange={(right) => onChange({ ...condition, right })}
        />
      )}
    </>
  );
}
