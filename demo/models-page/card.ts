/** The card of one entry: what it is, where it runs, and what can be done with its files. */
import type { LoadProgress, ModelState, Server, StoredTag, Tag } from '../../src/index.ts'
import { element } from '../dom.ts'
import { bytes, bytesOf } from '../format.ts'
import { shareOf, wordsFor } from '../loading.ts'
import { createCardActions } from './card-actions.ts'
import type { EntryFacts } from './facts.ts'
import { createFit } from './fit.ts'
import { traitsOf } from './traits.ts'

export interface CardOptions {
  server: Server
  tag: Tag
  signal: AbortSignal
  /** Called after a change of the entry's files or state. */
  onChange(): Promise<void>
  /** Selects the model for the chat. */
  use(tag: Tag): void
}

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
export function createCard({ server, tag, signal, onChange, use }: CardOptions): Card {
  const card = element('li', 'card')
  const name = element('h3', '')
  const traits = element('ul', 'traits')
  const about = element('dl', 'facts')
  const said = element('p', 'quiet')
  const bar = element('progress', '')
  const fit = createFit(server, tag, signal)
  const say = (text: string): void => void (said.textContent = text)
  const actions = createCardActions({ server, tag, signal, onChange, use, say })
  let facts: EntryFacts | undefined

  /** Ends the display of progress, and leaves any other text. */
  function endProgress(): void {
    if (!bar.hidden) say('')
    bar.hidden = true
  }

  bar.ariaLabel = 'Progress'
  bar.hidden = true
  said.role = 'status'
  card.append(name, traits, about, fit.element, bar, said, actions.element)
  return {
    element: card,
    show(next) {
      facts = next
      const { state } = next
      const isLoading = state.status === 'loading'
      name.textContent = state.name
      traits.ariaLabel = `What ${state.name} can do`
      traits.replaceChildren(...traitsOf(next).map((trait) => element('li', '', trait)))
      about.replaceChildren(
        ...rowsOf(tag, next).flatMap(([key, value]) => [
          element('dt', '', key),
          element('dd', '', value),
        ]),
      )
      fit.show(state)
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

function rowsOf(tag: Tag, { state, stored, listed }: EntryFacts): [name: string, value: string][] {
  const rows: [string, string][] = [
    ['Tag', tag],
    ['State', stateOf(state, stored)],
    ['Download', state.bytes === null ? 'not looked up yet' : bytes(state.bytes)],
  ]
  const isPart = stored?.status === 'partial' && !stored.outdated
  if (stored) rows.push(['Stored', isPart ? partOf(stored) : bytes(stored.bytes)])
  if (stored) rows.push(['Deleting frees', bytes(stored.ownBytes)])
  if (listed?.max_input_tokens) {
    rows.push(['Context', `${listed.max_input_tokens.toLocaleString('en')} tokens`])
  }
  const stated = {
    License: listed?.license,
    Parameters: listed?.parameters,
    Quantization: listed?.quantization,
  }
  for (const [name, value] of Object.entries(stated)) if (value) rows.push([name, value])
  return rows
}

function stateOf({ status }: ModelState, stored: StoredTag | undefined): string {
  if (stored?.outdated) return 'update available: the next load downloads the newer version'
  return STATUS[status] + (stored?.pinned ? ', pinned' : '')
}

function partOf({ bytes: here, resources }: StoredTag): string {
  const total = resources.reduce((sum, resource) => sum + resource.bytes, 0)
  return `${bytesOf(here, total)}, paused`
}
