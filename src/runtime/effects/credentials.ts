import { NodeFailure } from '../node-type.ts';

/** A header whose value is a secret of the operator: its name, and what stands before it. */
export interface CredentialHeader {
  readonly credentialRef: string;
  readonly prefix?: string;
}

/** What may be sent without being known, for whom, and to whom. */
export interface Credential {
  readonly name: string;
  readonly secret: string;
  /** It is sent nowhere else, whatever a definition says. */
  readonly origins: readonly string[];
  /** `*` stands for all. */
  readonly tenants: readonly string[];
}

/** A credential of another tenant is like none. */
export function credentialFor(
  credentials: readonly Credential[],
  name: string,
  tenant: string,
  url: string,
): Credential {
  const isTheirs = ({ tenants }: Credential): boolean => tenants.includes(tenant) || tenants.includes('*');
  const credential = credentials.find((each) => each.name === name && isTheirs(each));
  if (!credential) {
    const message = `This host has no credential ${JSON.stringify(name)} for this tenant.`;
    throw refused('credential_required', message, { requirement: name });
  }
  const { origin } = new URL(url);
  if (credential.origins.includes(origin)) return credential;
  const message = `The credential ${JSON.stringify(name)} is not for ${origin}.`;
  throw refused('credential_forbidden', message, { credentialRef: name, reason: 'out-of-audience' });
}

function refused(code: string, message: string, details: Record<string, string>): NodeFailure {
  return new NodeFailure({ code, message, details, retryable: false });
}
