import { createHmac } from 'node:crypto';
import type { Answer } from './api.ts';

/** What a sender sends: the exact text of the body, and the headers that go with it. */
export interface Sent {
  readonly body: string;
  readonly headers: Record<string, string>;
}

const hex = (secret: string, text: string, algorithm = 'sha256'): string =>
  createHmac(algorithm, secret).update(text).digest('hex');
const JSON_TYPE = { 'content-type': 'application/json' };
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' };
const seconds = (): number => Math.floor(Date.now() / 1_000);

/** An event of GitHub, signed as its documentation says. */
export function fromGitHub(secret: string, payload: object, more: { event?: string; delivery?: string } = {}): Sent {
  const { event = 'issues', delivery = '72d3162e-cc78-11e3-81ab-4c9367dc0958' } = more;
  const body = JSON.stringify(payload);
  const headers = {
    ...JSON_TYPE,
    'user-agent': 'GitHub-Hookshot/044aadd',
    'x-github-event': event,
    'x-github-delivery': delivery,
    'x-hub-signature-256': `sha256=${hex(secret, body)}`,
  };
  return { body, headers };
}

/** An event of Stripe, signed at a time in seconds. */
export function fromStripe(secret: string, payload: object, at = seconds()): Sent {
  const body = JSON.stringify(payload, null, 2);
  return { body, headers: { ...JSON_TYPE, 'stripe-signature': `t=${at},v1=${hex(secret, `${at}.${body}`)}` } };
}

/** A request of Slack: an event as JSON, or a command as a form. */
export function fromSlack(secret: string, payload: object | URLSearchParams, at = seconds()): Sent {
  const isForm = payload instanceof URLSearchParams;
  const body = isForm ? payload.toString() : JSON.stringify(payload);
  const headers = {
    ...(isForm ? FORM_TYPE : JSON_TYPE),
    'x-slack-request-timestamp': `${at}`,
    'x-slack-signature': `v0=${hex(secret, `v0:${at}:${body}`)}`,
  };
  return { body, headers };
}

/** Sends it to a URL. */
export async function send(url: string, { body, headers }: Sent): Promise<Answer> {
  const response = await fetch(url, { method: 'POST', headers, body });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: text === '' ? undefined : JSON.parse(text) };
}

/** An issue that was opened, as GitHub describes it, cut short. */
export const ISSUE_OPENED = {
  action: 'opened',
  issue: {
    number: 1347,
    title: 'Found a bug',
    html_url: 'https://github.com/octocat/Hello-World/issues/1347',
    labels: [{ name: 'bug' }],
    user: { login: 'octocat', id: 1 },
  },
  repository: { id: 1296269, full_name: 'octocat/Hello-World', private: false },
  sender: { login: 'octocat' },
};

/** A payment that succeeded, as Stripe describes it, cut short. */
export const PAYMENT_SUCCEEDED = {
  id: 'evt_1NG8Du2eZvKYlo2CUI79vXWy',
  object: 'event',
  api_version: '2019-02-19',
  created: 1686089970,
  type: 'payment_intent.succeeded',
  data: { object: { id: 'pi_3MtwBwLkdIwHu7ix28a3tqPa', object: 'payment_intent', amount: 2000, currency: 'usd' } },
  livemode: false,
};

/** A mention, as the Events API of Slack describes it, cut short. */
export const APP_MENTION = {
  token: 'ZZZZZZWSxiZZZ2yIvs3peJ',
  team_id: 'T061EG9R6',
  api_app_id: 'A0MDYCDME',
  event: { type: 'app_mention', user: 'U061F7AUR', text: 'What is the hour of the pearl?', channel: 'C0LAN2Q65' },
  type: 'event_callback',
  event_id: 'Ev0MDYGDKJ',
  event_time: 1515449522016,
};
