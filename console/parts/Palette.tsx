import { Dialog } from '@base-ui/react/dialog';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Command } from 'cmdk';
import { useState } from 'react';
import { useMay } from '../api/session.ts';
import { workflowsQuery } from '../api/workflows.ts';
import styles from './Palette.module.css';
import { PAGES } from './pages.ts';

const RUN_ID = /^run-[a-z0-9]{8,}$/;

/** Goes anywhere by typing a part of its name: a page, a run by its id, a workflow to start. */
export function Palette({ onClose }: { readonly onClose: () => void }) {
  const navigate = useNavigate();
  const may = useMay();
  const [typed, setTyped] = useState('');
  const { data } = useQuery({ ...workflowsQuery, enabled: may('manifest:read') });
  const go = (act: () => unknown) => () => {
    onClose();
    act();
  };
  const runId = RUN_ID.exec(typed.trim())?.[0];
  return (
    <Dialog.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className={styles.scrim} />
        <Dialog.Popup className={styles.popup} aria-label="Go to">
          <Command label="Go to" loop>
            <Command.Input
              className={styles.input}
              placeholder="A page, a run id, or a workflow to start …"
              value={typed}
              onValueChange={setTyped}
              autoFocus
            />
            <Command.List className={styles.list}>
              <Command.Empty className={styles.none}>Nothing has this name.</Command.Empty>
              {runId && (
                <Command.Item
                  className={styles.item}
                  value={runId}
                  onSelect={go(() => navigate({ to: '/runs/$runId', params: { runId }, search: {} }))}
                >
                  Open run <code>{runId}</code>
                </Command.Item>
              )}
              <Command.Group heading="Pages" className={styles.group}>
                {PAGES.map(({ to, title, keys, Icon }) => (
                  <Command.Item key={to} className={styles.item} value={title} onSelect={go(() => navigate({ to }))}>
                    <Icon aria-hidden="true" />
                    {title}
                    <kbd className={styles.kbd}>{keys}</kbd>
                  </Command.Item>
                ))}
              </Command.Group>
              {may('runs:create') && (
                <Command.Group heading="Start a run" className={styles.group}>
                  {(data ?? []).map(({ id, name }) => (
                    <Command.Item
                      key={id}
                      className={styles.item}
                      value={`start ${name} ${id}`}
                      onSelect={go(() => navigate({ to: '/runs', search: { start: id } }))}
                    >
                      {name}
                      <code className={styles.id}>{id}</code>
                    </Command.Item>
                  ))}
                </Command.Group>
              )}
            </Command.List>
          </Command>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
