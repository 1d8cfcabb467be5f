import type { Attachments } from '../attachments.ts'
import type { Composer } from '../composer.ts'
import { byId } from '../dom.ts'
import type { HistoryStore } from '../history/store.ts'
import { prepareMarkdown } from '../markdown/parser.ts'
import type { Models } from '../models.ts'
import { notice, wordsOf } from '../notice.ts'
import type { SettingsForm } from '../settings.ts'
import { createAnnouncer } from './announcer.ts'
import { createAnswering } from './answering.ts'
import { createConversationView } from './conversation.ts'
import { createCurrent, type Current } from './current.ts'
import { createKeeper } from './keeper.ts'
import type { RequestParts } from './requests.ts'
import { createConversation, pathOf, type Conversation } from './tree.ts'
import { createTurnActions } from './turn-actions.ts'

export interface ChatParts extends Omit<RequestParts, 'keeper' | 'announcer'> {
  composer: Composer
  attachments: Attachments
  history: HistoryStore
}

export interface Chat {
  /** Id of the conversation on the page. */
  readonly id: string
  /** Shows a conversation of the history. Stops a running answer. */
  open(id: string): Promise<void>
  /** Shows an empty conversation. Stops a running answer. */
  begin(): void
  /** Calls a function with the id of each conversation that is shown from now on. */
  onShow(listener: (id: string) => void): void
  /** Resolves with the conversation on the page; with the last one of the history if this one is empty. */
  latest(): Promise<Conversation | undefined>
}

/** Creates the chat, which sends a question with `fetch` and shows its answer piece by piece. */
export function createChat(parts: ChatParts): Chat {
  const { settings, composer, attachments, history } = parts
  const keeper = createKeeper(history)
  const announcer = createAnnouncer()
  const view = createConversationView((turn) => actionsFor(turn))
  const current = createCurrent({ ...parts, keeper, view })
  const answering = createAnswering({ ...parts, keeper, announcer, view, current })
  const actionsFor = createTurnActions({ ...parts, keeper, current, answering })

  /** Shows the conversation of a link in the address; at the start else that before a reload. */
  async function restore(isStart: boolean): Promise<void> {
    const found = (await keeper.fromAddress()) ?? (isStart ? await keeper.restore() : undefined)
    if (found) current.show(found)
  }

  async function askNext(question: string, images: readonly string[] = []): Promise<void> {
    await restored
    answering.ask(question, images, pathOf(current.conversation).at(-1)?.id ?? null)
  }

  async function askSuggested(question: string, images: readonly string[]): Promise<void> {
    if (images.length === 0 || (await parts.models.admitImages())) await askNext(question, images)
  }

  /** Asks the question that waited for the server when the page was reloaded to isolate it. */
  async function askAgain(question: string): Promise<void> {
    await restored
    const last = pathOf(current.conversation).at(-1)
    const isOpen = last?.question === question && !last.answer && !last.stopped && !last.error
    await (last && isOpen ? answering.run(last) : askNext(question))
  }

  composer.onSend((question) => {
    if (!settings.validate()) return
    composer.clear()
    void askNext(question, attachments.take())
    prepareMarkdown()
  })
  composer.onStop(current.stop)
  view.onSuggestion((question, images) => {
    if (!settings.validate()) return
    void askSuggested(question, images).catch(tell)
    composer.focus()
  })
  const begin = (): void => {
    if (current.conversation.turns.length > 0) current.show(createConversation())
    else composer.focus()
  }
  byId('new-chat', HTMLButtonElement).addEventListener('click', begin)
  followHistory(history, current)
  fitToModel(parts.models, settings)

  const tell = (error: unknown): void => void notice(wordsOf(error), 'mild')
  addEventListener('hashchange', () => void restore(false).catch(tell))
  const waiting = keeper.takeWaiting()
  const restored = restore(true).catch(tell)
  if (waiting !== undefined) void askAgain(waiting)
  composer.focus()
  return {
    get id() {
      return current.conversation.id
    },
    async open(id) {
      if (id === current.conversation.id) return
      const found = await history.get(id)
      if (found) current.show(found)
    },
    begin,
    onShow: current.onShow,
    async latest() {
      if (current.conversation.turns.length > 0) return current.conversation
      const [last] = await history.list()
      return last && history.get(last.id)
    },
  }
}

/** Shows what other tabs change in the conversation. */
function followHistory(history: HistoryStore, current: Current): void {
  history.onChange(({ type, id }, isOwn) => {
    if (isOwn && type === 'saved') return
    if (id !== current.conversation.id) return
    if (type === 'removed' && !current.isBusy) current.show(createConversation())
    else void current.refresh()
  })
}

/** Disables the settings that the chosen model does not take. */
function fitToModel(models: Models, settings: SettingsForm): void {
  const fit = (): void =>
    void models.selected().then(
      (model) => model && settings.fit(model),
      () => {},
    )
  byId('model', HTMLSelectElement).addEventListener('change', fit)
  fit()
}
