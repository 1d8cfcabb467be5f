/** The request in another API style, beside the one that was sent, as a difference of lines. */
import { element } from '../dom.ts'
import type { Answer } from '../wire/answer.ts'
import type { WireRequest } from '../wire/style.ts'
import { diffLines } from './diff.ts'
import { inStyle, STYLES, type StylePath } from './styles.ts'

/** Lines of a body up to which a difference is shown. Its time grows with their square. */
const MAX_LINES = 2_000

const MARK = { same: '  ', removed: '- ', added: '+ ' } as const

export function createTranslation() {
  const details = element('details', '')
  const summary = element('summary', '')
  const said = element('p', 'quiet')
  const code = element('pre', 'diff')
  let shown: Answer | undefined

  code.tabIndex = 0
  code.role = 'region'
  code.ariaLabel = 'Request in the other style'
  details.append(summary, said, code)
  details.addEventListener('toggle', () => update())

  function update(): void {
    if (!shown || !details.open) return
    const { request, question } = shown
    const path = otherPath(request.path)
    const other = inStyle(path, request, question)
    if (!other) {
      said.textContent = 'Only requests of the chat are translated.'
      code.replaceChildren()
      return
    }
    const [before, after] = [toText(request), toText(other)]
    said.textContent = `Lines with − are those of /v1/${request.path}, with + those of /v1/${path}.`
    if (Math.max(before.length, after.length) > MAX_LINES * 40) {
      code.textContent = after
      return
    }
    const lines = diffLines(before, after).map(({ kind, text }) =>
      element('span', kind, `${MARK[kind]}${text}\n`),
    )
    code.replaceChildren(...lines)
  }

  return {
    element: details,
    show(answer: Answer): void {
      shown = answer
      summary.textContent = `The same request as /v1/${otherPath(answer.request.path)}`
      update()
    },
  }
}

/** Returns the first style that is not the one of the path. */
function otherPath(path: string): StylePath {
  const paths = Object.keys(STYLES) as StylePath[]
  return paths.find((one) => one !== path) ?? 'messages'
}

/** Returns a request as text, as HTTP would send it, with a body in lines. */
function toText({ path, headers, body }: WireRequest): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  const shorten = (_name: string, value: unknown): unknown =>
    typeof value === 'string' && value.length > 500 ? `${value.slice(0, 100)}…` : value
  return [`POST /v1/${path}`, ...lines, '', JSON.stringify(body, shorten, 2)].join('\n')
}
