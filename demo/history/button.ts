import type { Chat } from '../chat/chat.ts'
import { byId } from '../dom.ts'
import { notice, wordsOf } from '../notice.ts'
import type { HistoryStore } from './store.ts'

/** Makes the button of the bar open the history. Its dialog is loaded when it is first opened. */
export function createHistoryButton(store: HistoryStore, chat: Chat): void {
  byId('history-open', HTMLButtonElement).addEventListener('click', () => {
    import('./dialog.ts')
      .then(({ openHistory }) => openHistory(store, chat))
      .catch(
        (error: unknown) => void notice(`The history cannot be shown. ${wordsOf(error)}`, 'mild'),
      )
  })
}
