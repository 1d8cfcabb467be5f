/** The fit of an entry on this device, and, on demand, the reasons for and against each way to run it. */
import type { ModelState, Reason, Server, Tag } from '../../src/index.ts'
import { element } from '../dom.ts'
import { placeName } from '../download-question.ts'
import { bytes, duration } from '../format.ts'
import { lookUp } from '../look-up.ts'
import { troubleWith } from '../trouble.ts'

export function createFit(server: Server, tag: Tag, signal: AbortSignal) {
  const details = element('details', '')
  const summary = element('summary', '')
  const list = element('ul', 'reasons')
  details.append(summary, list)
  details.addEventListener('toggle', () => {
    if (!details.open) return
    list.replaceChildren(element('li', '', 'Looking …'))
    lookUp(server, tag, signal).then(
      ({ state, explanation }) => {
        summary.textContent = verdictOf(state)
        list.replaceChildren(...explanation.reasons.map(toItem))
      },
      (error: unknown) => list.replaceChildren(element('li', '', troubleWith(tag, error))),
    )
  })
  return {
    element: details,
    show(state: ModelState): void {
      summary.textContent = verdictOf(state)
    },
  }
}

function verdictOf({ device, bytes: size }: ModelState): string {
  if (size === null) return 'Look up its size and fit'
  if (device === null) return 'Does not run on this device: why'
  return `Fits: runs on ${placeName(device)}. Why`
}

function toItem({ id, device, chosen, why, bytes: size, milliseconds }: Reason): HTMLElement {
  const item = element('li', '')
  const facts = [placeName(device), size === null ? 'size not known' : bytes(size)]
  if (milliseconds !== null) facts.push(`${duration(milliseconds)} for a run`)
  item.append(
    element('strong', '', chosen ? `${id}, chosen` : id),
    ` (${facts.join(', ')}): ${why}.`,
  )
  return item
}
