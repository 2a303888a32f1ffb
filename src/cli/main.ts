#!/usr/bin/env node
import { EXIT } from './exit.ts';
import { runCommandLine } from './program.ts';
import { realTerminal } from './terminal.ts';

const code = await runCommandLine(process.argv.slice(2), realTerminal());
// A host that is being started says for itself how it ends.
if (code !== EXIT.done) process.exitCode = code;
