import { Plus, X } from 'lucide-react';
import type { NodeTypeSummary, PortValue, WorkflowNode } from '../../src/protocol/running/workflows.ts';
import { Button } from '../parts/Button.tsx';
import { JsonField } from './ConfigForm.tsx';
import { type Draft, freeName } from './draft.ts';
import { ExpressionField } from './ExpressionField.tsx';
import type { KnownName } from './expression-editor.ts';
import styles from './Inspector.module.css';
import { isRequired, unsetPorts } from './input-ports.ts';

interface PortsProps {
  readonly node: WorkflowNode;
  readonly draft: Draft;
  readonly types: readonly NodeTypeSummary[];
  readonly names: readonly KnownName[];
  readonly onChange: (inputs: WorkflowNode['inputs']) => void;
}

const KINDS: Readonly<Record<PortValue['type'], string>> = {
  static: 'a fixed value',
  variable: 'a variable',
  connection: 'an output of a node',
  expression: 'an expression',
};

/** The inputs of a node, each with where its value comes from. */
export function Ports({ node, draft, types, names, onChange }: PortsProps) {
  const entries = Object.entries(node.inputs);
  const rename = (from: string, to: string): void =>
    onChange(Object.fromEntries(entries.map(([name, value]) => [name === from ? to : name, value])));
  const addNamed = (name: string): void => onChange({ ...node.inputs, [name]: { type: 'static', value: '' } });
  const unset = unsetPorts(node, draft, types);
  const missing = unset.filter(({ required }) => required).map(({ name }) => name);
  return (
    <fieldset className={styles.group}>
      <legend>Inputs</legend>
      {missing.length > 0 && (
        <p className={styles.missing} role="status">
          {missing.length === 1 ? 'A required input is missing' : 'Required inputs are missing'}: {missing.join(', ')}.
        </p>
      )}
      {entries.length === 0 && unset.length === 0 && (
        <p className="quiet">None. Drag an output of another node here, or add one.</p>
      )}
      {entries.map(([name, value], index) => (
        // The name is what is edited, so it cannot be the key.
        // biome-ignore lint/suspicious/noArrayIndexKey: inputs keep their order while they are edited
        <div key={index} className={styles.port}>
          <div className={styles.portHead}>
            <input
              aria-label={`Name of input ${index + 1}`}
              className={styles.small}
              value={name}
              title={isRequired(node, name, types) ? 'Required' : undefined}
              spellCheck={false}
              onChange={({ target }) => !Object.hasOwn(node.inputs, target.value) && rename(name, target.value)}
            />
            <span aria-hidden="true">=</span>
            <select
              aria-label={`Source of ${name}`}
              className={styles.small}
              value={value.type}
              onChange={({ target }) => onChange({ ...node.inputs, [name]: emptyValue(target.value, draft, node) })}
            >
              {Object.entries(KINDS).map(([kind, words]) => (
                <option key={kind} value={kind}>
                  {words}
                </option>
              ))}
            </select>
            <Button
              kind="quiet"
              icon={<X />}
              aria-label={`Remove input ${name}`}
              onClick={() => onChange(Object.fromEntries(entries.filter(([other]) => other !== name)))}
            />
          </div>
          <PortSource
            name={name}
            value={value}
            draft={draft}
            types={types}
            names={names}
            nodeId={node.id}
            onChange={(next) => onChange({ ...node.inputs, [name]: next })}
          />
        </div>
      ))}
      <div className={styles.unset}>
        {unset.map(({ name, required }) => (
          <Button key={name} icon={<Plus />} aria-label={`Add input ${name}`} onClick={() => addNamed(name)}>
            {required ? `${name} (required)` : name}
          </Button>
        ))}
        <Button kind="quiet" icon={<Plus />} onClick={() => addNamed(freeName('value', Object.keys(node.inputs)))}>
          Add input
        </Button>
      </div>
    </fieldset>
  );
}

function emptyValue(kind: string, { nodes, variables }: Draft, node: WorkflowNode): PortValue {
  if (kind === 'variable') return { type: 'variable', variableName: variables[0]?.name ?? '' };
  if (kind === 'expression') return { type: 'expression', expression: '' };
  if (kind === 'connection') {
    const source = nodes.find(({ id }) => id !== node.id)?.id ?? '';
    return { type: 'connection', nodeId: source, outputKey: '' };
  }
  return { type: 'static', value: '' };
}

interface SourceProps {
  readonly name: string;
  readonly value: PortValue;
  readonly draft: Draft;
  readonly types: readonly NodeTypeSummary[];
  readonly names: readonly KnownName[];
  readonly nodeId: string;
  readonly onChange: (value: PortValue) => void;
}

function PortSource({ name, value, draft, types, names, nodeId, onChange }: SourceProps) {
  if (value.type === 'static') {
    return <Fixed name={name} value={value.value} onChange={(fixed) => onChange({ type: 'static', value: fixed })} />;
  }
  if (value.type === 'expression') {
    return (
      <ExpressionField
        label={`Expression of ${name}`}
        value={value.expression}
        names={names}
        onChange={(expression) => onChange({ type: 'expression', expression })}
      />
    );
  }
  if (value.type === 'variable') {
    return (
      <select
        aria-label={`Variable of ${name}`}
        className={styles.small}
        value={value.variableName}
        onChange={({ target }) => onChange({ ...value, variableName: target.value })}
      >
        <option value="">Choose a variable …</option>
        {draft.variables.map((variable) => (
          <option key={variable.name}>{variable.name}</option>
        ))}
      </select>
    );
  }
  const typeId = draft.nodes.find(({ id }) => id === value.nodeId)?.typeId;
  const outputs = types.find((type) => type.typeId === typeId)?.outputs ?? [];
  return (
    <div className={styles.portHead}>
      <select
        aria-label={`Node of ${name}`}
        className={styles.small}
        value={value.nodeId}
        onChange={({ target }) => onChange({ ...value, nodeId: target.value })}
      >
        {draft.nodes
          .filter(({ id }) => id !== nodeId)
          .map((other) => (
            <option key={other.id} value={other.id}>
              {other.name}
            </option>
          ))}
      </select>
      <input
        aria-label={`Output of ${name}`}
        className={styles.small}
        list={`outputs-of-${name}`}
        value={value.outputKey}
        placeholder="output"
        onChange={({ target }) => onChange({ ...value, outputKey: target.value })}
      />
      <datalist id={`outputs-of-${name}`}>
        {outputs.map((output) => (
          <option key={output} value={output} />
        ))}
      </datalist>
    </div>
  );
}

/** Text is typed as it is; anything else as JSON. */
function Fixed({
  name,
  value,
  onChange,
}: {
  readonly name: string;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
}) {
  if (typeof value !== 'string') {
    return (
      <JsonField label={`Value of ${name}`} hint="As JSON." value={value} problem={undefined} onChange={onChange} />
    );
  }
  return (
    <div className={styles.portHead}>
      <input
        aria-label={`Value of ${name}`}
        className={styles.small}
        dir="auto"
        value={value}
        placeholder="text"
        onChange={({ target }) => onChange(target.value)}
      />
      <Button
        kind="quiet"
        title="A number, a list or an object instead of a text"
        onClick={() => onChange(value === '' ? 0 : [value])}
      >
        JSON
      </Button>
    </div>
  );
}
