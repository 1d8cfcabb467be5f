/** The comparison of models: a button that opens its dialog, which is loaded then. */
import type { Server } from '../../src/index.ts'
import type { Chat } from '../chat/chat.ts'
import { byId } from '../dom.ts'
import { notice, wordsOf } from '../notice.ts'

/** Makes the button open the dialog with the last conversation. */
export function createCompare(server: Promise<Server>, chat: Chat): void {
  const open = (): void => {
    import('./dialog.ts')
      .then(({ openCompare }) => openCompare(server, chat))
      .catch((error: unknown) => notice(`Comparing failed. ${wordsOf(error)}`, 'mild'))
  }
  byId('compare-open', HTMLButtonElement).addEventListener('click', open)
}
