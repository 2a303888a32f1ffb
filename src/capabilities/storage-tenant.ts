/** The tenant that queries use. Tenant names have no `#`, so the data of test keys is a tenant of its own. */
export function storageTenant(tenant: string, isTest: boolean): string {
  return isTest ? `${tenant}#test` : tenant;
}

/** The tenants that queries use for all data of a tenant: that of its keys, and that of its test keys. */
export function storageTenants(tenant: string): readonly string[] {
  return [storageTenant(tenant, false), storageTenant(tenant, true)];
}
