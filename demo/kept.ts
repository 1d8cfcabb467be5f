/** Choices of the visitor that survive a reload: the model and the API style. */
import { byId } from './dom.ts'

const MODEL = 'playground:model'
const STYLE = 'playground:style'

/** Returns the tag of the model that was chosen last; `null` if none was. */
export const keptModel = (): string | null => localStorage.getItem(MODEL)

/** Keeps the tag of a model for the next visit. */
export const keepModel = (tag: string): void => localStorage.setItem(MODEL, tag)

/** Descriptions of the styles, for those who know the endpoints. */
const ENDPOINTS: Readonly<Record<string, string>> = {
  completions: "POST /v1/chat/completions, as OpenAI's SDK sends them",
  messages: "POST /v1/messages, as Anthropic's SDK sends them",
  responses: "POST /v1/responses, as OpenAI's newer API takes them",
}

/** Selects the API style that was chosen last, and keeps each later choice. */
export function keepStyle(): void {
  const said = byId('style-path', HTMLElement)
  const styles = byId('style', HTMLFieldSetElement)
  const inputs = [...styles.querySelectorAll('input')]
  const kept = inputs.find(({ value }) => value === localStorage.getItem(STYLE))
  if (kept) kept.checked = true
  const show = (): string => {
    const { value = '' } = inputs.find(({ checked }) => checked) ?? {}
    said.textContent = ENDPOINTS[value] ?? ''
    return value
  }
  styles.addEventListener('change', () => localStorage.setItem(STYLE, show()))
  show()
}
