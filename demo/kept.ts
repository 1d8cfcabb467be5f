/** Choices of the visitor that survive a reload: the model and the wire style. */
import { byId } from './dom.ts'

const MODEL = 'playground:model'
const STYLE = 'playground:style'

/** Returns the tag of the model that was chosen last; `null` if none was. */
export const keptModel = (): string | null => localStorage.getItem(MODEL)

/** Keeps the tag of a model for the next visit. */
export const keepModel = (tag: string): void => localStorage.setItem(MODEL, tag)

/** Selects the wire style that was chosen last, and keeps each later choice. */
export function keepStyle(): void {
  const styles = byId('style', HTMLFieldSetElement)
  const inputs = [...styles.querySelectorAll('input')]
  const kept = inputs.find(({ value }) => value === localStorage.getItem(STYLE))
  if (kept) kept.checked = true
  styles.addEventListener('change', () => {
    const checked = inputs.find((input) => input.checked)
    if (checked) localStorage.setItem(STYLE, checked.value)
  })
}
