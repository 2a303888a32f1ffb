import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { WorkflowNode } from '../../src/protocol/running/workflows.ts';
import { tryNode } from '../api/trials.ts';
import { Button } from '../parts/Button.tsx';
import { Dialog } from '../parts/Dialog.tsx';
import { explain } from '../parts/explain.ts';
import { AreaField } from '../parts/Fields.tsx';
import { readJsonObject } from '../parts/json-text.ts';
import { TrialResult } from '../parts/TrialResult.tsx';
import styles from './Inspector.module.css';

const FORM = 'try-node';

/** Runs a node of the draft by itself, with values for its inputs. Nothing is saved. */
export function TryNode({ node, onClose }: { readonly node: WorkflowNode; readonly onClose: () => void }) {
  const [text, setText] = useState(() => JSON.stringify(samplesFor(node), null, 2));
  const [problem, setProblem] = useState<string>();
  const run = useMutation({ mutationFn: tryNode });
  const submit = (): void => {
    const inputs = readJsonObject(text);
    setProblem(inputs.problem);
    if (inputs.problem !== undefined) return;
    run.mutate({ typeId: node.typeId, config: node.config, ...(inputs.value && { inputs: inputs.value }) });
  };
  const footer = (
    <>
      <Button onClick={onClose}>Close</Button>
      <Button kind="main" type="submit" form={FORM} isBusy={run.isPending}>
        Run the node
      </Button>
    </>
  );
  return (
    <Dialog title={`Try ${node.name}`} isOpen isSide onClose={onClose} footer={footer}>
      <form
        id={FORM}
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <p className="quiet">
          It runs for real, with its config as it is here: what it sends is sent. The workflow is not saved.
        </p>
        <AreaField
          label="Inputs"
          hint="JSON: a value for each input port."
          problem={problem}
          rows={8}
          spellCheck={false}
          value={text}
          onChange={setText}
        />
        {run.isError && (
          <p className={styles.refused} role="alert">
            {explain(run.error).text}
          </p>
        )}
        {run.data && <TrialResult run={run.data} />}
      </form>
    </Dialog>
  );
}

/** Values that the ports have anyway; the others are to be filled in. */
function samplesFor({ inputs }: WorkflowNode): Record<string, unknown> {
  const ports = Object.entries(inputs).map(([port, from]) => [port, from.type === 'static' ? from.value : ''] as const);
  return Object.fromEntries(ports);
}
