/** Actions on one entry: on its download, its memory and its files. */
import type { Server, Tag } from '../../src/index.ts'
import { button, element } from '../dom.ts'
import { askToDownload } from '../download-question.ts'
import { bytes, bytesOf } from '../format.ts'
import { lookUp } from '../look-up.ts'
import { ownEntries, removeOwnEntry } from '../own-catalog.ts'
import { codeOf, troubleWith } from '../trouble.ts'
import type { EntryFacts } from './facts.ts'

/** Largest download in bytes that starts without a question. */
const UNASKED_BYTES = 32_000_000

export interface CardActionsOptions {
  server: Server
  tag: Tag
  signal: AbortSignal
  /** Called after a change of the entry's files or state. */
  onChange(): Promise<void>
  /** Selects the model for the chat. */
  use(tag: Tag): void
  /** Starts the server again with the changed catalog. */
  restart(): Promise<void>
  /** Shows a text on the card. */
  say(text: string): void
}

/** Work of a button. It resolves with what to say, if anything. */
type Work = () => Promise<string | void>

export function createCardActions(options: CardActionsOptions) {
  const { server, tag, signal, onChange, use, restart, say } = options
  const row = element('div', 'row')
  const { models, storage } = server
  let name: string = tag

  const explain = (error: unknown): string =>
    codeOf(error) === 'load_paused' || signal.aborted ? '' : troubleWith(name, error)

  /** Runs the work of a button, and reads the state again after it. */
  async function act(work: Work): Promise<void> {
    for (const each of row.querySelectorAll('button')) each.disabled = true
    say('')
    const words = await work().catch(explain)
    await onChange()
    if (words) say(words)
  }

  function action(label: string, work: Work): HTMLButtonElement {
    const made = button(label, 'plain', () => void act(work).catch(() => {}))
    made.setAttribute('aria-label', `${label}: ${name}`)
    return made
  }

  /** Asks before a large download, and starts the load. It goes on when the page is closed. */
  async function download(): Promise<void> {
    const found = await lookUp(server, tag, signal)
    const size = found.state.bytes ?? 0
    if (size > UNASKED_BYTES && (await askToDownload(found, false)) !== 'download') return
    models.load(tag).then(onChange, async (error: unknown) => {
      await onChange()
      say(explain(error))
    })
  }

  async function check(): Promise<string> {
    const onProgress = (progress: { loadedBytes: number; totalBytes: number }): void =>
      say(`Checking · ${bytesOf(progress.loadedBytes, progress.totalBytes)}`)
    const damaged = await storage.repair(tag, { signal, onProgress })
    return damaged === 0 ? 'All files are intact.' : `${bytes(damaged)} were damaged and repaired.`
  }

  async function forget(): Promise<void> {
    await models.remove(tag)
    removeOwnEntry(tag)
    await restart()
  }

  function fileActions({ pinned }: NonNullable<EntryFacts['stored']>): HTMLElement[] {
    return [
      pinned ? action('Unpin', () => storage.unpin(tag)) : action('Pin', () => storage.pin(tag)),
      action('Check files', check),
      action('Delete', () => models.remove(tag)),
    ]
  }

  return {
    element: row,
    /** Shows the buttons that make sense in this state. */
    show({ state, stored, listed }: EntryFacts, isLoading: boolean): void {
      name = state.name
      const canChat =
        state.type === 'model' && !listed?.capabilities?.['embeddings']?.supported && !isLoading
      const canLoad = state.device !== null || state.bytes === null
      const actions: HTMLElement[] = []
      if (isLoading) {
        actions.push(action('Pause', () => models.pause(tag)))
        actions.push(action('Cancel', () => models.cancel(tag)))
      } else if (state.status === 'remote' && canLoad) {
        const label = stored?.outdated ? 'Update' : stored ? 'Resume' : 'Download'
        actions.push(action(label, download))
      }
      if (canChat) actions.push(button('Use in chat', 'plain', () => use(tag)))
      if (state.status === 'loaded') actions.push(action('Unload', () => models.unload(tag)))
      if (stored && !isLoading) actions.push(...fileActions(stored))
      const isOwn = ownEntries().some((entry) => entry.tag === tag)
      if (isOwn) actions.push(action('Remove from my catalog', forget))
      row.replaceChildren(...actions)
    },
  }
}
