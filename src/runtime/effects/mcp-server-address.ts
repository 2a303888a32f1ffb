/** A configured MCP server: a program that this host starts, or a URL. */
export interface McpServerAddress {
  readonly name: string;
  readonly url?: string | undefined;
  readonly command?: string | undefined;
  readonly args: readonly string[];
  /** Environment variables of the program, besides the few that every program gets. */
  readonly env: Readonly<Record<string, string>>;
  /** Secrets with their names; only the names may be shown. */
  readonly secrets: readonly { readonly id: string; readonly value: string }[];
  /** Sent as a bearer token. */
  readonly token?: string | undefined;
  readonly timeoutMs: number;
}
