import type { Server } from '../src/index.ts'
import type { Attachments } from './attachments.ts'
import type { Composer } from './composer.ts'
import type { Action, Conversation, TurnView } from './conversation.ts'
import { byId } from './dom.ts'
import type { Inspector } from './inspector.ts'
import type { Loading } from './loading.ts'
import type { Models } from './models.ts'
import { wordsOf } from './notice.ts'
import type { SettingsForm } from './settings.ts'
import { AnswerError, receive, type Answer } from './wire/answer.ts'
import type { Exchange } from './wire/style.ts'
import { summary } from './wire/summary.ts'

/** A question with its images, which are data URLs. */
type Asked = Pick<Exchange, 'question' | 'images'>

export interface ChatParts {
  server: Promise<Server>
  models: Models
  loading: Loading
  settings: SettingsForm
  composer: Composer
  attachments: Attachments
  conversation: Conversation
  inspector: Inspector
}

/** Creates the chat, which sends a question with `fetch` and shows its answer piece by piece. */
export function createChat(parts: ChatParts): void {
  const { server: starting, models, loading, settings, composer, conversation, inspector } = parts
  const { attachments } = parts
  const newChat = byId('new-chat', HTMLButtonElement)
  let history: Exchange[] = []
  let running: AbortController | undefined

  async function ask(question: string, images: readonly string[] = []): Promise<void> {
    if (running) return
    const asked: Asked = { question, images }
    const { signal } = (running = new AbortController())
    const turn = conversation.add(question, images)
    let answer: Answer | undefined
    setBusy(true)
    turn.waiting('Starting the server')
    try {
      const server = await unlessAborted(starting, signal)
      answer = await compose(server, asked, signal)
      turn.waiting('Waiting for the first token')
      await exchange(server, answer, turn, signal)
      turn.end(summary(answer))
      finish(signal, asked, answer)
    } catch (error) {
      if (signal.aborted) turn.end(['stopped', ...(answer ? [summary(answer)] : [])].join(' · '))
      else turn.fail(explain(error), actions(error, asked, turn))
      finish(signal, asked, signal.aborted ? answer : undefined)
    }
  }

  /** Adds the exchange to the history, unless a new chat has begun. */
  function finish(signal: AbortSignal, asked: Asked, answer: Answer | undefined): void {
    if (running?.signal !== signal) return
    if (answer?.text) history.push({ ...asked, answer: answer.text })
    setBusy(false)
  }

  async function compose(server: Server, asked: Asked, signal: AbortSignal): Promise<Answer> {
    const { id: model, max_tokens } = await unlessAborted(models.chosen(), signal)
    // The request would load the model, too. This call only shows the progress.
    loading.load(model).catch(() => {})
    const style = settings.style()
    const modelMaxTokens = max_tokens ?? undefined
    const read = settings.read()
    const request = style.request({ model, modelMaxTokens, history, ...asked, settings: read })
    return { style, url: `${server.baseURL}/${request.path}`, request, raw: '', text: '' }
  }

  async function exchange(
    server: Server,
    answer: Answer,
    turn: TurnView,
    signal: AbortSignal,
  ): Promise<void> {
    let frame = 0
    const show = (): void => {
      frame = 0
      if (answer.text !== '') turn.answer(answer.text)
      inspector.show(answer)
    }
    show()
    const send = server.controlled ? fetch : server.fetch
    try {
      // Tokens can arrive faster than a screen shows them.
      await receive(answer, send, signal, () => (frame ||= requestAnimationFrame(show)))
    } finally {
      cancelAnimationFrame(frame)
      show()
    }
  }

  function actions(error: unknown, { question, images }: Asked, turn: TurnView): Action[] {
    const again = (): void => {
      turn.remove()
      void ask(question, images)
    }
    const list: Action[] = [{ label: 'Ask again', run: again }]
    if (error instanceof AnswerError && error.code === 'context_length_exceeded') {
      return [{ label: 'New chat', run: clear }]
    }
    if (error instanceof AnswerError) return list
    return [...list, { label: 'Reload the page', run: () => location.reload() }]
  }

  function setBusy(busy: boolean): void {
    if (!busy) running = undefined
    composer.setBusy(busy)
    models.lock(busy)
    newChat.disabled = false
  }

  function clear(): void {
    running?.abort()
    history = []
    conversation.clear()
    attachments.take()
    setBusy(false)
    newChat.disabled = true
    composer.focus()
  }

  composer.onSend((question) => {
    composer.clear()
    void ask(question, attachments.take())
  })
  composer.onStop(() => running?.abort())
  conversation.onSuggestion((question) => {
    void ask(question)
    composer.focus()
  })
  newChat.addEventListener('click', clear)
  composer.focus()
}

/** Resolves as the promise does. Rejects as soon as the signal is aborted. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  return Promise.race([promise, aborted])
}

function explain(error: unknown): string {
  // `fetch` throws a TypeError if the service worker has stopped or lost control of the page.
  if (!(error instanceof TypeError)) return wordsOf(error)
  return `The server in this page did not answer (${error.message}). Ask again, or reload the page.`
}
