import { defineCapability } from '../../capability.ts';
import { hostSettings } from '../../host-settings.ts';
import { bindRoutes } from '../../request.ts';
import { joinSettings } from '../../settings.ts';
import { Authorization } from '../../trust/authorization/door.ts';
import { ConsoleSessions } from './door.ts';
import { CONSOLE_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { ConsoleSessionService } from './service.ts';
import { consoleSettings } from './settings.ts';
import { signInRoutes } from './sign-in-routes.ts';

/** Sign-in to the console, which is served by the host itself. */
export const webConsole = defineCapability({
  name: 'console',
  provides: ConsoleSessions,
  needs: [Authorization],
  settings: joinSettings(hostSettings, consoleSettings),
  tables: CONSOLE_TABLES,
  build: ({ runtime }, { authorization }, settings) => {
    const service = new ConsoleSessionService(runtime, settings);
    const services = { sessions: service, authorization };
    return { service, routes: [...bindRoutes(routes, services), ...bindRoutes(signInRoutes, services)] };
  },
});
