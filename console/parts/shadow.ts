/**
 * The shadow root of an element. Editors put their styles into the document as text, which the host's policy forbids;
 * in a shadow root they adopt them as style sheets, which it allows. Our colours reach into it, being properties.
 */
export function shadowOf(element: HTMLElement): ShadowRoot {
  return element.shadowRoot ?? element.attachShadow({ mode: 'open' });
}
