#!/usr/bin/env node
import { EXIT } from './exit.ts';
import { runCommandLine } from './program.ts';
import { realTerminal } from './terminal.ts';

const code = await runCommandLine(process.argv.slice(2), realTerminal());
// `serve` returns while the host is still running and sets its own exit code, so success must not overwrite it.
if (code !== EXIT.done) process.exitCode = code;
