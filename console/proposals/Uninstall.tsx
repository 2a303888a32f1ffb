import { useMutation, useQueryClient } from '@tanstack/react-query';
import { client } from '../api/client.ts';
import { Button } from '../parts/Button.tsx';
import { Dialog } from '../parts/Dialog.tsx';
import { complain, say } from '../parts/toasts.tsx';

interface UninstallProps {
  readonly artifact: { readonly ref: string; readonly replaces?: string };
  readonly onClose: () => void;
}

/** Takes out what a proposal installed, after saying what that means. */
export function Uninstall({ artifact: { ref, replaces }, onClose }: UninstallProps) {
  const cache = useQueryClient();
  const uninstall = useMutation({
    mutationFn: () => client.uninstallArtifact(ref),
    onSuccess: () => {
      say('The artifact is uninstalled.');
      void cache.invalidateQueries({ queryKey: ['installed'] });
      void cache.invalidateQueries({ queryKey: ['proposal'] });
      onClose();
    },
    onError: complain,
  });
  const footer = (
    <>
      <Button onClick={onClose}>Keep it</Button>
      <Button kind="danger" isBusy={uninstall.isPending} onClick={() => uninstall.mutate()}>
        Uninstall
      </Button>
    </>
  );
  return (
    <Dialog title="Uninstall?" isOpen onClose={onClose} footer={footer}>
      <p>
        <code>{ref}</code> is taken out of use at once.{' '}
        {replaces === undefined ? 'It replaced nothing.' : `The previous one is used again: ${replaces}.`} Later
        versions stay. It cannot be installed again from this proposal.
      </p>
    </Dialog>
  );
}
