import { useState } from 'react';
import { isObject, type JsonObject } from '../../src/protocol/format/json.ts';
import { Field } from '../parts/Field.tsx';
import { showInput } from '../runs/inputs.ts';
import styles from './Inspector.module.css';

/** The part of JSON Schema that fields are made from. */
interface Shape {
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
}

interface FormProps {
  readonly schema: JsonObject;
  readonly config: JsonObject;
  readonly onChange: (config: JsonObject) => void;
  /** What is wrong with the config, by its key. */
  readonly problems: ReadonlyMap<string, string>;
  /** Values that the host knows, by the key that takes them; others may be typed. */
  readonly known?: ReadonlyMap<string, readonly string[]>;
}

/** A form for the config of a node, made from the schema of its type. */
export function ConfigForm({ schema, config, onChange, problems, known }: FormProps) {
  const shapes = propertiesOf(schema);
  const names = [...new Set([...shapes.keys(), ...Object.keys(config)])];
  const isOpen = schema.additionalProperties !== undefined && shapes.size === 0;
  if (isOpen) {
    return (
      <JsonField
        label="Config"
        value={config}
        problem={undefined}
        hint="Any object, as JSON."
        onChange={(value) => onChange(isObject(value) ? value : {})}
      />
    );
  }
  if (names.length === 0) return <p className="quiet">This node type has no config.</p>;
  const required = requiredOf(schema);
  const set = (name: string, value: unknown): void => {
    const { [name]: _old, ...rest } = config;
    onChange(value === undefined ? rest : { ...config, [name]: value });
  };
  return names.map((name) => (
    <ConfigField
      key={name}
      name={name}
      shape={shapes.get(name) ?? {}}
      isRequired={required.has(name)}
      value={config[name]}
      problem={problems.get(name)}
      known={known?.get(name) ?? []}
      onChange={(value) => set(name, value)}
    />
  ));
}

/** A config that may take several shapes has the fields of all of them. */
function shapesOf(schema: JsonObject): readonly JsonObject[] {
  return Array.isArray(schema.anyOf) ? schema.anyOf.filter(isObject) : [schema];
}

function propertiesOf(schema: JsonObject): ReadonlyMap<string, Shape> {
  const entries = shapesOf(schema).flatMap(({ properties }) =>
    isObject(properties) ? Object.entries(properties) : [],
  );
  return new Map(entries.map(([name, shape]) => [name, isObject(shape) ? (shape as Shape) : {}]));
}

function requiredOf(schema: JsonObject): ReadonlySet<string> {
  const lists = shapesOf(schema).map(({ required }) => new Set<unknown>(Array.isArray(required) ? required : []));
  const [first = new Set<unknown>(), ...others] = lists;
  return new Set([...first].filter((name) => others.every((other) => other.has(name))).map(String));
}

interface FieldProps {
  readonly name: string;
  readonly shape: Shape;
  readonly isRequired: boolean;
  readonly value: unknown;
  readonly problem: string | undefined;
  readonly known: readonly string[];
  readonly onChange: (value: unknown) => void;
}

/** Texts that are longer than a line. */
const LONG = /prompt|template|description|message|expression|body|note/i;
/** A text that may be this long is written in several lines. */
const LINES_FROM = 4_096;

function ConfigField({ name, shape, isRequired, value, problem, known, onChange }: FieldProps) {
  const label = isRequired ? `${name} (required)` : name;
  const hint = shape.description;
  const choices =
    shape.enum ?? (shape.type === 'boolean' ? [true, false] : shape.const === undefined ? [] : [shape.const]);
  const placeholder = shape.default === undefined ? '' : `${showInput(shape.default)} if not given`;
  if (choices.length > 0) {
    return (
      <Field label={label} hint={hint} problem={problem}>
        {(field) => (
          <select
            {...field}
            value={value === undefined ? '' : String(value)}
            onChange={({ target }) => onChange(choices.find((choice) => String(choice) === target.value))}
          >
            <option value="">{placeholder === '' ? 'Not given' : placeholder}</option>
            {choices.map((choice) => (
              <option key={String(choice)}>{String(choice)}</option>
            ))}
          </select>
        )}
      </Field>
    );
  }
  if (shape.type === 'number' || shape.type === 'integer') {
    return (
      <Field label={label} hint={hint} problem={problem}>
        {(field) => (
          <input
            {...field}
            type="number"
            min={shape.minimum}
            max={shape.maximum}
            step={shape.type === 'integer' ? 1 : 'any'}
            value={showInput(value)}
            placeholder={placeholder}
            onChange={({ target }) => onChange(target.value === '' ? undefined : Number(target.value))}
          />
        )}
      </Field>
    );
  }
  if (known.length > 0) {
    return (
      <Field label={label} hint={hint} problem={problem}>
        {(field) => (
          <>
            <input
              {...field}
              list={`${field.id}-known`}
              value={showInput(value)}
              placeholder={placeholder === '' ? 'Choose or type' : placeholder}
              onChange={({ target }) => onChange(target.value === '' ? undefined : target.value)}
            />
            <datalist id={`${field.id}-known`}>
              {known.map((each) => (
                <option key={each} value={each} />
              ))}
            </datalist>
          </>
        )}
      </Field>
    );
  }
  if (shape.type === 'string') {
    const change = (text: string): void => onChange(text === '' ? undefined : text);
    return (
      <Field label={label} hint={hint} problem={problem}>
        {(field) =>
          LONG.test(name) || (shape.maxLength ?? 0) >= LINES_FROM ? (
            <textarea
              {...field}
              value={showInput(value)}
              placeholder={placeholder}
              onChange={({ target }) => change(target.value)}
            />
          ) : (
            <input
              {...field}
              value={showInput(value)}
              placeholder={placeholder}
              onChange={({ target }) => change(target.value)}
            />
          )
        }
      </Field>
    );
  }
  return <JsonField label={label} hint={hint ?? 'As JSON.'} value={value} problem={problem} onChange={onChange} />;
}

interface JsonFieldProps {
  readonly label: string;
  readonly hint: string;
  readonly value: unknown;
  readonly problem: string | undefined;
  readonly onChange: (value: unknown) => void;
}

/** A value as JSON. What is no JSON yet stays in the field and is not passed on. */
export function JsonField({ label, hint, value, problem, onChange }: JsonFieldProps) {
  const [text, setText] = useState(() => (value === undefined ? '' : JSON.stringify(value, null, 2)));
  const [broken, setBroken] = useState<string>();
  const change = (next: string): void => {
    setText(next);
    try {
      onChange(next.trim() === '' ? undefined : JSON.parse(next));
      setBroken(undefined);
    } catch (error) {
      setBroken(`This is not JSON: ${error instanceof Error ? error.message : ''}`);
    }
  };
  return (
    <Field label={label} hint={hint} problem={broken ?? problem}>
      {(field) => (
        <textarea
          {...field}
          className={`${field.className} ${styles.json}`}
          value={text}
          spellCheck={false}
          onChange={({ target }) => change(target.value)}
        />
      )}
    </Field>
  );
}
