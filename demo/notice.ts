import { button, byId, element } from './dom.ts'

export interface NoticeAction {
  label: string
  run: () => void
}

/** Shows a text above the composer; `mild` can be dismissed. Returns a function that removes it. */
export function notice(text: string, kind: 'mild' | 'bad', action?: NoticeAction): () => void {
  const box = element('div', `notice ${kind}`)
  box.role = kind === 'bad' ? 'alert' : 'status'
  box.append(element('p', '', text))
  const close = (): void => box.remove()
  const row = element('div', 'row')
  if (action) row.append(button(action.label, 'plain', action.run))
  if (kind === 'mild') row.append(button('Dismiss', 'plain', close))
  if (row.hasChildNodes()) box.append(row)
  byId('notices', HTMLElement).append(box)
  return close
}

/** Returns the message of an error. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
