import { Plus, X } from 'lucide-react';
import { type ReactNode, useId } from 'react';
import { isObject } from '../../src/protocol/format/json.ts';
import { Button } from './Button.tsx';
import { Field } from './Field.tsx';
import styles from './SchemaForm.module.css';
import { choicesOf, type Schema, typeOf } from './schema.ts';
import { type Draft, draftOf } from './schema-draft.ts';

interface FieldsProps {
  readonly schema: Schema;
  readonly draft: Draft;
  readonly onChange: (draft: Draft) => void;
  /** By JSON pointer. */
  readonly problems?: Readonly<Record<string, string>>;
  /** The name of a value that is not an object. */
  readonly label?: string;
}

/** The fields of a form that is made from a JSON Schema. */
export function SchemaFields({ schema, draft, onChange, problems = {}, label = 'Answer' }: FieldsProps) {
  const top = { schema, draft, onChange, problems, path: '', isRequired: true };
  if (typeOf(schema) === 'object') return <Members {...top} />;
  return <Value {...top} label={schema.title ?? label} />;
}

interface PartProps extends Required<Omit<FieldsProps, 'label'>> {
  readonly path: string;
  readonly isRequired: boolean;
}

function Members({ schema, draft, onChange, problems, path }: PartProps) {
  const given = isObject(draft) ? (draft as Readonly<Record<string, Draft>>) : {};
  return (
    <div className={styles.fields}>
      {Object.entries(schema.properties ?? {}).map(([name, member]) => (
        <Value
          key={name}
          schema={member}
          label={member.title ?? name}
          draft={given[name] ?? draftOf(member)}
          onChange={(next) => onChange({ ...given, [name]: next })}
          problems={problems}
          path={`${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`}
          isRequired={schema.required?.includes(name) ?? false}
        />
      ))}
    </div>
  );
}

/** A text with so many characters needs more than one line. */
const LONG = 80;

function Value(props: PartProps & { readonly label: string }) {
  const { schema, draft, onChange, problems, path, label, isRequired } = props;
  const type = typeOf(schema);
  const choices = choicesOf(schema);
  if (!choices && type === 'object') return <Group {...props} />;
  if (!choices && type === 'array') return <List {...props} />;
  if (type === 'boolean' && !choices) return <Check {...props} />;
  const text = typeof draft === 'string' ? draft : '';
  return (
    <Field label={isRequired ? label : `${label} (optional)`} hint={schema.description} problem={problems[path]}>
      {(field) => {
        const shared = {
          ...field,
          value: text,
          dir: 'auto' as const,
          onChange: ({ target }: { readonly target: { readonly value: string } }) => onChange(target.value),
        };
        if (choices) {
          return (
            <select {...shared}>
              <option value="">Choose …</option>
              {choices.map(({ value, label: words }) => (
                <option key={JSON.stringify(value)} value={JSON.stringify(value)}>
                  {words}
                </option>
              ))}
            </select>
          );
        }
        if (isLong(schema, text)) return <textarea {...shared} rows={Math.min(14, text.split('\n').length + 3)} />;
        const isNumber = type === 'number' || type === 'integer';
        return <input {...shared} inputMode={isNumber ? 'decimal' : 'text'} autoComplete="off" />;
      }}
    </Field>
  );
}

function isLong({ maxLength = 0 }: Schema, text: string): boolean {
  return maxLength > 2 * LONG || text.length > LONG || text.includes('\n');
}

function Part({ label, problem, children }: { label: string; problem: string | undefined; children: ReactNode }) {
  return (
    <fieldset className={styles.group}>
      <legend>{label}</legend>
      {children}
      {problem && (
        <p className={styles.problem} role="alert">
          {problem}
        </p>
      )}
    </fieldset>
  );
}

function Group(props: PartProps & { readonly label: string }) {
  return (
    <Part label={props.label} problem={props.problems[props.path]}>
      <Members {...props} />
    </Part>
  );
}

function List({ schema, draft, onChange, problems, path, label }: PartProps & { readonly label: string }) {
  const items: readonly Draft[] = Array.isArray(draft) ? draft : [];
  const { prefixItems = [], items: each = { type: 'string' } } = schema;
  const isFixed = prefixItems.length > 0;
  return (
    <Part label={label} problem={problems[path]}>
      {items.map((item, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: entries have no identity but their place
        <div key={index} className={styles.entry}>
          <Value
            schema={prefixItems[index] ?? each}
            label={`${label} ${index + 1}`}
            draft={item}
            onChange={(next) => onChange(items.with(index, next))}
            problems={problems}
            path={`${path}/${index}`}
            isRequired
          />
          {!isFixed && (
            <Button
              kind="quiet"
              aria-label={`Remove ${label} ${index + 1}`}
              icon={<X />}
              onClick={() => onChange(items.toSpliced(index, 1))}
            />
          )}
        </div>
      ))}
      {!isFixed && (
        <div>
          <Button icon={<Plus />} onClick={() => onChange([...items, draftOf(each)])}>
            Add to {label}
          </Button>
        </div>
      )}
    </Part>
  );
}

function Check({ schema, draft, onChange, label }: PartProps & { readonly label: string }) {
  const id = useId();
  return (
    <div className={styles.check}>
      <input id={id} type="checkbox" checked={draft === true} onChange={({ target }) => onChange(target.checked)} />
      <label htmlFor={id}>{label}</label>
      {schema.description && <p className="quiet">{schema.description}</p>}
    </div>
  );
}
