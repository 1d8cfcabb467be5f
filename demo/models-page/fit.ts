/** The fit of an entry on this device, and, on demand, the reasons for and against each way to run it. */
import type { ModelState, Reason, Server, Tag } from '../../src/index.ts'
import { element } from '../dom.ts'
import { placeName } from '../download-question.ts'
import { bytes, duration } from '../format.ts'
import type { ListedModel } from '../listing.ts'
import { lookUp } from '../look-up.ts'
import { isRoomy, type Place } from '../recommendation.ts'
import { troubleWith } from '../trouble.ts'
import type { EntryFacts } from './facts.ts'
import { guessBytes } from './needs.ts'

export interface FitOptions {
  server: Server
  tag: Tag
  signal: AbortSignal
  /** Promise of the facts of this device; of `undefined` if they cannot be read. */
  place: Promise<Place | undefined>
}

export function createFit(
  { server, tag, signal, place }: FitOptions,
  onReasons: (reasons: readonly Reason[]) => void,
) {
  const details = element('details', '')
  const summary = element('summary', '')
  const list = element('ul', 'reasons')
  let latest: ModelState | undefined

  /** Shows the verdict, with an estimate if nothing was looked up. */
  async function tell(state: ModelState, listed: ListedModel | undefined): Promise<void> {
    latest = state
    summary.textContent = verdictOf(state)
    const guess = guessBytes(listed)
    const known = state.bytes === null ? await place : undefined
    // A look-up may have ended meanwhile.
    if (guess === undefined || !known || latest !== state) return
    summary.textContent = verdictOf(state, isRoomy(guess, known))
  }

  details.append(summary, list)
  details.addEventListener('toggle', () => {
    if (!details.open) return
    list.replaceChildren(element('li', '', 'Looking …'))
    lookUp(server, tag, signal).then(
      ({ state, listed, explanation }) => {
        void tell(state, listed)
        onReasons(explanation.reasons)
        list.replaceChildren(...explanation.reasons.map(toItem))
      },
      (error: unknown) => list.replaceChildren(element('li', '', troubleWith(tag, error))),
    )
  })
  return {
    element: details,
    show: ({ state, listed }: EntryFacts): void => void tell(state, listed),
  }
}

/** Returns the verdict. `hasRoom` says whether a model that was not looked up should fit, if that is known. */
function verdictOf({ device, bytes: size }: ModelState, hasRoom?: boolean): string {
  if (size === null) {
    const guess = hasRoom ? 'Should fit (estimate)' : 'Is probably too large (estimate)'
    return `${hasRoom === undefined ? '' : `${guess}. `}Look up its size and fit`
  }
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
