/** The tenant that queries use. Tenant names have no `#`, so the data of test keys is a tenant of its own. */
export function storageTenant(tenant: string, isTest: boolean): string {
  return isTest ? `${tenant}#test` : tenant;
}
