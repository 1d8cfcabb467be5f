/** The choice between clients for which the request is written as code. */
import { byId, copies } from '../dom.ts'
import type { Answer } from '../wire/answer.ts'
import { CODE_KINDS, type CodeKind } from './code.ts'
import { inStyle } from './styles.ts'

const KEY = 'playground:code'

export function createCodeView() {
  const select = byId('code-kind', HTMLSelectElement)
  const request = byId('request', HTMLElement)
  let shown: Answer | undefined

  select.append(...CODE_KINDS.map(({ id, label }) => new Option(label, id)))
  select.value = localStorage.getItem(KEY) ?? 'fetch'
  if (select.value === '') select.value = 'fetch'
  copies(byId('copy-request', HTMLButtonElement), () => request.textContent ?? '')
  select.addEventListener('change', () => {
    localStorage.setItem(KEY, select.value)
    update()
  })

  function update(): void {
    const kind = CODE_KINDS.find(({ id }) => id === select.value)
    if (shown && kind) request.textContent = write(kind, shown)
  }

  return {
    show(answer: Answer): void {
      shown = answer
      update()
    },
  }
}

/** Returns the code, in the style that the client speaks. */
function write({ label, path, write: toCode }: CodeKind, answer: Answer): string {
  const { url, request, question } = answer
  const spoken = path ? inStyle(path, request, question) : request
  if (!spoken) return `// The ${label} does not send requests of /v1/${request.path}.\n`
  const base = url.slice(0, -request.path.length)
  return toCode(base + spoken.path, spoken)
}
