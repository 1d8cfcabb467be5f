/** The card of one entry: what it is, where it runs, and what can be done with its files. */
import type { LoadProgress, ModelState, Reason, StoredTag, Tag } from '../../src/index.ts'
import { element } from '../dom.ts'
import { cardRows, type Row } from '../download-question.ts'
import { bytes, bytesOf } from '../format.ts'
import type { ListedModel } from '../listing.ts'
import { shareOf, wordsFor } from '../loading.ts'
import { createCardActions, type CardActionsOptions } from './card-actions.ts'
import type { EntryFacts } from './facts.ts'
import { createFit, type FitOptions } from './fit.ts'
import { describeNeeds, guessBytes } from './needs.ts'
import { traitsOf } from './traits.ts'

export type CardOptions = Omit<CardActionsOptions, 'say'> & FitOptions

export interface Card {
  element: HTMLElement
  show(facts: EntryFacts): void
  progress(progress: LoadProgress): void
  /** Returns `true` if bytes of the entry are on this device. */
  isHere(): boolean
  /** Returns the text that a search looks at, in lower case. */
  text(): string
}

const STATUS = {
  remote: 'not downloaded',
  stored: 'on this device',
  loading: 'loading',
  loaded: 'in memory',
} as const

/** Creates a card. It is empty until `show` is called. */
export function createCard(options: CardOptions): Card {
  const { server, tag, signal } = options
  const card = element('li', 'card')
  const name = element('h3', '')
  const traits = element('ul', 'traits')
  const about = element('p', '')
  const list = element('dl', 'facts')
  const said = element('p', 'quiet')
  const bar = element('progress', '')
  let reasons: readonly Reason[] | undefined
  const fit = createFit(options, (found) => {
    reasons = found
    // The look-up has found its size, and its license and languages if the catalog states none.
    if (facts?.state.bytes === null) void options.onChange().catch(() => {})
    else if (facts) showRows(facts)
  })
  const say = (text: string): void => void (said.textContent = text)
  const actions = createCardActions({ ...options, say })
  let facts: EntryFacts | undefined

  function showRows(known: EntryFacts): void {
    list.replaceChildren(
      ...rowsOf(tag, known, reasons).flatMap(([key, value]) => [
        element('dt', '', key),
        element('dd', '', value),
      ]),
    )
  }

  /** Reads the ways to run an entry whose files are known, which asks no hub. */
  async function explain(): Promise<void> {
    reasons = (await server.explain(tag, { signal })).reasons
    if (facts) showRows(facts)
  }

  /** Ends the display of progress, and leaves any other text. */
  function endProgress(): void {
    if (!bar.hidden) say('')
    bar.hidden = true
  }

  bar.ariaLabel = 'Progress'
  bar.hidden = true
  said.role = 'status'
  card.append(name, about, traits, list, fit.element, bar, said, actions.element)
  return {
    element: card,
    show(next) {
      facts = next
      const { state } = next
      const isLoading = state.status === 'loading'
      if (state.bytes !== null && !reasons) void explain().catch(() => {})
      name.textContent = state.name
      traits.ariaLabel = `What ${state.name} can do`
      traits.replaceChildren(...traitsOf(next).map((trait) => element('li', '', trait)))
      about.textContent = next.description ?? ''
      showRows(next)
      fit.show(next)
      if (!isLoading) endProgress()
      actions.show(next, isLoading)
    },
    progress(at) {
      if (at.phase === 'ready') return endProgress()
      const part = shareOf(at)
      if (facts && facts.state.status !== 'loading') {
        facts = { ...facts, state: { ...facts.state, status: 'loading' } }
        actions.show(facts, true)
      }
      bar.hidden = false
      if (part === undefined) bar.removeAttribute('value')
      else bar.value = part
      say(at.phase === 'download' ? wordsFor(at) : 'Preparing for this device …')
    },
    isHere: () =>
      facts !== undefined && (facts.stored !== undefined || facts.state.status !== 'remote'),
    text: () => [tag, name.textContent, ...(facts ? traitsOf(facts) : [])].join(' ').toLowerCase(),
  }
}

function rowsOf(
  tag: Tag,
  { state, stored, listed }: EntryFacts,
  reasons: readonly Reason[] | undefined,
): Row[] {
  const rows: Row[] = [
    ['Tag', tag],
    ['State', stateOf(state, stored)],
    ['Download', downloadOf(state, listed)],
    ['Needs', describeNeeds(state, listed, reasons)],
  ]
  const isPart = stored?.status === 'partial' && !stored.outdated
  if (stored) rows.push(['Stored', isPart ? partOf(stored) : bytes(stored.bytes)])
  if (stored) rows.push(['Deleting frees', bytes(stored.ownBytes)])
  if (listed) rows.push(...cardRows(listed))
  const stated = { Parameters: listed?.parameters, Quantization: listed?.quantization }
  for (const [name, value] of Object.entries(stated)) if (value) rows.push([name, value])
  if (state.bytes === null) rows.push(['Unverified', UNVERIFIED])
  return rows
}

const UNVERIFIED = 'stated by the catalog; the hub is asked before a download'

function downloadOf({ bytes: size }: ModelState, listed: ListedModel | undefined): string {
  if (size !== null) return bytes(size)
  const guess = guessBytes(listed)
  if (guess === undefined) return 'not looked up yet'
  return `about ${bytes(guess)}, estimated from its parameters`
}

function stateOf({ status }: ModelState, stored: StoredTag | undefined): string {
  if (stored?.outdated) return 'update available: the next load downloads the newer version'
  return STATUS[status] + (stored?.pinned ? ', pinned' : '')
}

function partOf({ bytes: here, resources }: StoredTag): string {
  const total = resources.reduce((sum, resource) => sum + resource.bytes, 0)
  return `${bytesOf(here, total)}, paused`
}
