import type { Chat } from '../chat/chat.ts'
import { byId, element } from '../dom.ts'
import { Drawer } from '../drawer.ts'
import { wordsOf } from '../notice.ts'
import type { HistoryStore } from './store.ts'

/** Creates the history beside the chat. Its list is loaded when it is first shown. */
export function createSidebar(store: HistoryStore, chat: Chat): void {
  const drawer = new Drawer({
    part: 'history',
    opener: 'history-open',
    closer: 'history-close',
    isOpen: true,
  })
  let isLoaded = false

  async function load(): Promise<void> {
    isLoaded = true
    try {
      const { createList } = await import('./list.ts')
      drawer.element.append(...(await createList(store, chat, () => drawer.leave())))
    } catch (error) {
      drawer.element.append(element('p', 'quiet', `The history cannot be shown. ${wordsOf(error)}`))
    }
  }

  byId('side-new', HTMLButtonElement).addEventListener('click', () => {
    drawer.leave()
    chat.begin()
  })
  drawer.onShow(() => {
    if (!isLoaded) void load()
  })
}
