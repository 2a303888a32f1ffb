import { NodeFailure } from '../node-failure.ts';

/** A header whose value is a configured credential, with a prefix such as `Bearer `. */
export interface CredentialHeader {
  readonly credentialRef: string;
  readonly prefix?: string;
}

/** A secret that workflows may send without seeing it. */
export interface Credential {
  readonly name: string;
  readonly secret: string;
  /** The only origins that it is sent to. */
  readonly origins: readonly string[];
  /** The tenants that may use it; `*` means all. */
  readonly tenants: readonly string[];
}

/** Finds a credential of a tenant. One of another tenant is treated as missing. */
export function credentialOf(credentials: readonly Credential[], name: string, tenant: string): Credential {
  const isUsable = ({ tenants }: Credential): boolean => tenants.includes(tenant) || tenants.includes('*');
  const credential = credentials.find((each) => each.name === name && isUsable(each));
  if (credential) return credential;
  const message = `This tenant has no credential ${JSON.stringify(name)}. Check CAPSTAN_CREDENTIALS.`;
  throw refused('credential_required', message, { requirement: name });
}

/** Finds a credential for a request; a wrong origin is refused. */
export function credentialFor(
  credentials: readonly Credential[],
  name: string,
  tenant: string,
  url: string,
): Credential {
  const credential = credentialOf(credentials, name, tenant);
  const { origin } = new URL(url);
  if (credential.origins.includes(origin)) return credential;
  const message = `The credential ${JSON.stringify(name)} must not be sent to ${origin}.`;
  throw refused('credential_forbidden', message, { credentialRef: name, reason: 'out-of-audience' });
}

function refused(code: string, message: string, details: Record<string, string>): NodeFailure {
  return new NodeFailure({ code, message, details, retryable: false });
}
