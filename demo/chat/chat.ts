import type { Server } from '../../src/index.ts'
import type { Attachments } from '../attachments.ts'
import type { Composer } from '../composer.ts'
import { byId } from '../dom.ts'
import type { HistoryStore } from '../history/store.ts'
import type { Inspector } from '../inspector.ts'
import type { Loading } from '../loading.ts'
import { prepareMarkdown } from '../markdown/view.ts'
import type { Models } from '../models.ts'
import { notice, wordsOf } from '../notice.ts'
import type { SettingsForm } from '../settings.ts'
import type { Tools } from '../tools/index.ts'
import { AnswerError } from '../wire/answer.ts'
import { createConversationView } from './conversation.ts'
import { explain } from './explain.ts'
import { createKeeper } from './keeper.ts'
import { toKeptAnswer } from './kept.ts'
import { createExchange, type Exchanged, type Outcome } from './requests.ts'
import {
  addTurn,
  branchesOf,
  choose,
  createConversation,
  pathOf,
  removeTurn,
  touch,
  type Conversation,
  type Turn,
} from './tree.ts'
import type { Action, TurnActions, TurnView } from './turn.ts'

export interface ChatParts {
  server: Promise<Server>
  models: Models
  loading: Loading
  settings: SettingsForm
  composer: Composer
  attachments: Attachments
  inspector: Inspector
  history: HistoryStore
  tools: Tools
}

export interface Chat {
  /** Shows a conversation of the history. Stops a running answer. */
  open(id: string): Promise<void>
}

/** Creates the chat, which sends a question with `fetch` and shows its answer piece by piece. */
export function createChat(parts: ChatParts): Chat {
  const { models, settings, composer, attachments } = parts
  const newChat = byId('new-chat', HTMLButtonElement)
  const view = createConversationView(actionsFor)
  const keeper = createKeeper(parts.history)
  const exchange = createExchange({ ...parts, keeper })
  let conversation = createConversation()
  let running: AbortController | undefined
  /** `true` if another tab has changed the conversation while an answer arrived here. */
  let hasMissed = false

  /** Shows the conversation. `asked` is a turn whose answer is yet to come. */
  function render(asked?: Turn): Map<Turn, TurnView> {
    const { views, added } = view.show(conversation)
    newChat.disabled = conversation.turns.length === 0
    for (const turn of added) {
      const turnView = views.get(turn)
      if (turn === asked) continue
      void (turn.error === undefined ? turnView?.end() : turnView?.fail(actionsAfter(turn)))
    }
    return views
  }

  function ask(question: string, images: readonly string[], parent: string | null): void {
    if (running) return
    const turn = addTurn(conversation, { parent, question, images })
    void run(turn)
  }

  async function askNext(question: string, images: readonly string[] = []): Promise<void> {
    await restored
    ask(question, images, pathOf(conversation).at(-1)?.id ?? null)
  }

  /** Asks the question that waited for the server when the page was reloaded to isolate it. */
  async function askAgain(question: string): Promise<void> {
    await restored
    const last = pathOf(conversation).at(-1)
    const isOpen = last?.question === question && !last.answer && !last.stopped && !last.error
    await (last && isOpen ? run(last) : askNext(question))
  }

  /** Sends a turn and shows its answer; with `prefill` what follows that text. */
  async function run(turn: Turn, prefill = ''): Promise<void> {
    const own = conversation
    const { signal } = (running = new AbortController())
    const turnView = render(turn).get(turn)
    if (!turnView) return setBusy(false)
    const exchanged = { own, turn, turnView, prefill }
    setBusy(true)
    if (prefill === '') view.scrollToEnd()
    keeper.remember(own.id)
    void keeper.save(own)
    const outcome = await exchange(exchanged, signal)
    await settle(exchanged, outcome, signal.aborted)
    if (running?.signal !== signal) return
    setBusy(false)
    if (hasMissed) await takeOver(own.id)
  }

  /** Keeps and shows what an exchange came to. */
  async function settle(
    { own, turn, turnView, prefill }: Exchanged,
    { answer, error }: Outcome,
    isStopped: boolean,
  ): Promise<void> {
    if (answer) turn.answer = toKeptAnswer(answer, prefill)
    const isContinued = prefill !== ''
    // A continuation that failed can be tried again.
    turn.stopped = isStopped || (isContinued && error !== undefined) || undefined
    touch(own, turn)
    if (error !== undefined && !isContinued) turn.error = explain(error)
    await keeper.save(own)
    // The answer keeps the text that it had, so it shows no error of its own.
    if (error !== undefined && isContinued) notice(explain(error), 'mild')
    if (turn.error === undefined) await turnView.end()
    else await turnView.fail(actionsAfter(turn, error))
  }

  function actionsFor(turn: Turn): TurnActions {
    return {
      edit: (question) => ask(question, turn.images, turn.parent),
      regenerate: () => ask(turn.question, turn.images, turn.parent),
      resume() {
        const { answer } = turn
        if (running || !answer) return
        if (settings.style().canContinue) return void run(turn, answer.text.trimEnd())
        notice('/v1/responses cannot continue an answer. Choose another wire style.', 'mild')
      },
      remove: () => remove(turn),
      step(step) {
        if (running) return
        const branches = branchesOf(conversation, turn)
        const next = branches[branches.indexOf(turn) + step]
        if (!next) return
        choose(conversation, next)
        render().get(next)?.branches.focus(step)
        void keeper.save(conversation)
      },
    }
  }

  function actionsAfter(turn: Turn, error?: unknown): Action[] {
    const again = (): void => {
      if (running) return
      removeTurn(conversation, turn)
      ask(turn.question, turn.images, turn.parent)
    }
    const isTooLong = error instanceof AnswerError && error.code === 'context_length_exceeded'
    if (isTooLong) return [{ label: 'New chat', run: () => show(createConversation()) }]
    const list: Action[] = [{ label: 'Ask again', run: again }]
    if (error === undefined) return list
    if (error instanceof AnswerError) return [...list, ...models.remedies()]
    return [...list, { label: 'Reload the page', run: () => location.reload() }]
  }

  function remove(turn: Turn): void {
    if (running) return
    removeTurn(conversation, turn)
    render()
    void keeper.save(conversation)
    composer.focus()
  }

  function setBusy(busy: boolean): void {
    if (!busy) running = undefined
    composer.setBusy(busy)
    view.setBusy(busy)
    newChat.disabled = conversation.turns.length === 0
  }

  /** Shows another conversation. Stops a running answer, which stays in its own conversation. */
  function show(next: Conversation): void {
    running?.abort()
    conversation = next
    keeper.remember(next.turns.length > 0 ? next.id : undefined)
    attachments.take()
    render()
    setBusy(false)
    view.scrollToEnd()
    composer.focus()
  }

  composer.onSend((question) => {
    if (!settings.validate()) return
    composer.clear()
    void askNext(question, attachments.take())
    prepareMarkdown()
  })
  composer.onStop(() => running?.abort())
  view.onSuggestion((question) => {
    if (!settings.validate()) return
    void askNext(question)
    composer.focus()
  })
  newChat.addEventListener('click', () => show(createConversation()))
  parts.history.onChange(({ type, id }, isOwn) => {
    if (isOwn && type === 'saved') return
    if (id !== conversation.id) return
    if (running) hasMissed = true
    else if (type === 'removed') show(createConversation())
    else void takeOver(id)
  })

  /** Shows what another tab has added to this conversation. */
  async function takeOver(id: string): Promise<void> {
    hasMissed = false
    const found = await parts.history.get(id)
    if (!found || found.id !== conversation.id || running) return
    const own = new Map(conversation.turns.map((turn) => [turn.id, turn]))
    const turns = found.turns.map((turn) => {
      const known = own.get(turn.id)
      return known?.changed === turn.changed ? known : turn
    })
    conversation = { ...found, turns }
    render()
  }

  async function open(id: string): Promise<void> {
    if (id === conversation.id) return
    const found = await parts.history.get(id)
    if (found) show(found)
  }

  /** Shows the conversation of a link in the address; at the start else that before a reload. */
  async function restore(isStart: boolean): Promise<void> {
    const found = (await keeper.fromAddress()) ?? (isStart ? await keeper.restore() : undefined)
    if (found) show(found)
  }

  const tell = (error: unknown): void => void notice(wordsOf(error), 'mild')

  /** Disables the settings that the chosen model does not take. */
  const fit = (): void =>
    void models.selected().then(
      (model) => model && settings.fit(model),
      () => {},
    )
  byId('model', HTMLSelectElement).addEventListener('change', fit)
  fit()

  addEventListener('hashchange', () => void restore(false).catch(tell))
  const waiting = keeper.takeWaiting()
  const restored = restore(true).catch(tell)
  if (waiting !== undefined) void askAgain(waiting)
  composer.focus()
  return { open }
}
