/** The page of all models and predictors: a card for each, a search, and ways to add others. */
import type { Server, Tag } from '../../src/index.ts'
import { element } from '../dom.ts'
import type { Models } from '../models.ts'
import type { FillPage } from '../page.ts'
import { readPlace } from '../recommendation.ts'
import type { PageServer } from '../start.ts'
import { troubleWith } from '../trouble.ts'
import { createAdd } from './add.ts'
import { createCard, type Card } from './card.ts'
import type { Drops } from './dropped.ts'
import { readFacts } from './facts.ts'
import { createRecommended } from './recommended.ts'
import { createStorageLine } from './storage-line.ts'

export interface ModelsPageOptions extends PageServer {
  models: Models
  /** Files that are dropped outside of the page's zone. */
  drops: Drops
}

/** Returns the function that fills the page. */
export function fillModelsPage(options: ModelsPageOptions): FillPage {
  const { starting, restart, models, drops } = options
  return (body, signal, close) => {
    const said = element('p', 'quiet', 'Reading the catalog …')
    said.role = 'status'
    body.replaceChildren(said)
    starting
      .then((server) => show(server))
      .catch((error: unknown) => {
        if (!signal.aborted) said.textContent = troubleWith('the list', error)
      })

    async function show(server: Server): Promise<void> {
      const cards = new Map<Tag, Card>()
      const place = readPlace(server).catch(() => undefined)
      const recommended = createRecommended({ server, place, signal, use })
      const search = element('input', '')
      const here = createGroup('On this device')
      const others = createGroup('In the catalog')
      const storage = createStorageLine(server)

      function use(tag: Tag): void {
        close()
        models.select(tag)
      }

      function arrange(card: Card): void {
        const group = card.isHere() ? here : others
        if (card.element.parentElement !== group.list) group.list.append(card.element)
      }

      function filter(): void {
        const words = search.value.toLowerCase().split(/\s+/)
        for (const card of cards.values()) {
          card.element.hidden = !words.every((word) => card.text().includes(word))
        }
        const count = [...cards.values()].filter(({ element: shown }) => !shown.hidden).length
        said.textContent = `${count} of ${cards.size} entries of the catalog`
        for (const group of [here, others]) group.update()
      }

      async function refresh(): Promise<void> {
        const facts = await readFacts(server)
        if (signal.aborted) return
        for (const [tag, card] of cards) {
          if (facts.has(tag)) continue
          card.element.remove()
          cards.delete(tag)
        }
        for (const [tag, known] of facts) {
          const card =
            cards.get(tag) ??
            createCard({
              server,
              tag,
              signal,
              onChange: changed,
              place,
              restart,
              use,
            })
          cards.set(tag, card)
          card.show(known)
          arrange(card)
        }
        filter()
        await storage.refresh()
      }

      async function changed(): Promise<void> {
        await Promise.all([models.refresh(), refresh()])
      }

      await refresh()
      if (signal.aborted) return
      search.type = 'search'
      search.placeholder = 'Search by name, tag or ability'
      search.ariaLabel = 'Search models and predictors'
      search.addEventListener('input', filter)
      body.replaceChildren(recommended, search, said, storage.element)
      body.append(here.element, others.element)
      body.append(
        createAdd({ server, restart, signal, onAdded: changed, select: models.select, drops }),
      )
      await followLoads(server, cards, refresh, signal)
    }
  }
}

/** Shows the progress of loads until the signal aborts, whoever started them. */
async function followLoads(
  server: Server,
  cards: ReadonlyMap<Tag, Card>,
  refresh: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  for await (const progress of server.models.progress({ signal })) {
    cards.get(progress.tag)?.progress(progress)
    if (progress.phase === 'ready') await refresh()
  }
}

function createGroup(title: string) {
  const group = element('section', '')
  const head = element('h2', '', title)
  const list = element('ul', 'cards')
  head.id = `group-${title.toLowerCase().replaceAll(' ', '-')}`
  group.setAttribute('aria-labelledby', head.id)
  group.append(head, list)
  return {
    element: group,
    list,
    /** Hides the group if none of its cards is shown. */
    update(): void {
      group.hidden = [...list.children].every((card) => card instanceof HTMLElement && card.hidden)
    },
  }
}
