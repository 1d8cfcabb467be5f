import type { ModelState, Server } from '../src/index.ts'
import { button, byId, element } from './dom.ts'
import { bytes } from './format.ts'
import { notice, wordsOf } from './notice.ts'

const STATUS: Readonly<Record<ModelState['status'], string>> = {
  remote: 'not downloaded',
  stored: 'stored',
  loading: 'loading',
  loaded: 'in memory',
}

/** Lists the models that are on this device. Returns a function that refreshes the list. */
export function createShelf(starting: Promise<Server>): () => void {
  const shelf = byId('shelf', HTMLElement)

  async function refresh(): Promise<void> {
    const server = await starting
    const here = (await server.models.list()).filter(({ status }) => status !== 'remote')
    if (here.length > 0) shelf.replaceChildren(...here.map((state) => row(server, state)))
    else shelf.replaceChildren(element('li', 'quiet', 'No model is on this device yet.'))
  }

  function row(server: Server, state: ModelState): HTMLElement {
    const item = element('li', '')
    const actions = element('div', 'row')
    const act = (label: string, work: () => Promise<void>): void => {
      const made = button(label, 'plain', () => {
        made.disabled = true
        work().then(refresh, (error: unknown) => {
          notice(`${state.tag}: ${wordsOf(error)}`, 'mild')
          return refresh()
        })
      })
      made.ariaLabel = `${label} ${state.name}`
      actions.append(made)
    }
    if (state.status === 'loaded') act('Unload', () => server.models.unload(state.tag))
    if (state.status === 'stored') act('Delete', () => server.models.remove(state.tag))
    const place = state.device ?? 'does not run on this device'
    const known = state.bytes === null ? ['on the hub'] : [bytes(state.bytes), place]
    const facts = [STATUS[state.status], ...known]
    item.append(element('p', '', state.tag), element('p', 'quiet', facts.join(' · ')), actions)
    return item
  }

  return () => void refresh().catch(() => shelf.replaceChildren())
}
