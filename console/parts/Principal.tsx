import { useQueries } from '@tanstack/react-query';
import { Fragment } from 'react';
import { principalQuery } from '../api/principals.ts';
import { useMay } from '../api/session.ts';

/** Who did something, by the name that people know; the id is there on hover, and until the name is known. */
export function Principal({ id }: { readonly id: string }) {
  const [name = id] = usePrincipalNames([id]);
  return name === id ? <bdi>{id}</bdi> : <bdi title={id}>{name}</bdi>;
}

/** Several of them, separated by commas. */
export function Principals({ ids }: { readonly ids: readonly string[] }) {
  return ids.map((id, index) => (
    <Fragment key={id}>
      {index > 0 && ', '}
      <Principal id={id} />
    </Fragment>
  ));
}

/** The names of principals, for texts. */
export function usePrincipalNames(ids: readonly string[]): readonly string[] {
  const may = useMay();
  const found = useQueries({ queries: ids.map((id) => principalQuery(id, may('runs:read'))) });
  return ids.map((id, index) => found[index]?.data ?? id);
}
