import { button, byId } from './dom.ts'

/** Button of the strip. */
export interface StripAction {
  label: string
  run: () => void
}

/** Creates the strip above the composer: a text, a bar and buttons. */
export function createStrip() {
  const strip = byId('loading', HTMLElement)
  const text = byId('loading-text', HTMLElement)
  const bar = byId('loading-bar', HTMLProgressElement)
  const row = byId('loading-actions', HTMLElement)

  function setActions(actions: readonly StripAction[]): void {
    row.hidden = actions.length === 0
    row.replaceChildren(...actions.map(({ label, run }) => button(label, 'plain', run)))
  }

  /** Shows progress. The buttons stay as they are unless others are passed. */
  function show(
    words: string,
    { part, actions }: { part?: number; actions?: readonly StripAction[] } = {},
  ): void {
    strip.hidden = false
    text.textContent = words
    bar.hidden = false
    if (part === undefined) bar.removeAttribute('value')
    else bar.value = part
    if (actions) setActions(actions)
  }

  return {
    show,
    say(words: string, actions: readonly StripAction[] = []): void {
      show(words, { actions })
      bar.hidden = true
    },
    hide(): void {
      strip.hidden = true
      setActions([])
    },
  }
}
