/** Requests of the chat: a turn as a request, and its answer as it arrives. */
import type { Server } from '../../src/index.ts'
import type { Inspector } from '../inspector.ts'
import type { Loading } from '../loading.ts'
import type { Models } from '../models.ts'
import type { SettingsForm } from '../settings.ts'
import { unlessAborted } from '../task.ts'
import { receive, type Answer } from '../wire/answer.ts'
import type { Keeper } from './keeper.ts'
import { toExchanges, toKeptAnswer } from './kept.ts'
import { turnsBefore, type Conversation, type Turn } from './tree.ts'
import type { TurnView } from './turn.ts'

/** The objects that an exchange changes. */
export interface Exchanged {
  own: Conversation
  turn: Turn
  turnView: TurnView
  /** Text of the answer that the model continues; empty for a new answer. */
  prefill: string
}

export interface RequestParts {
  models: Models
  loading: Loading
  settings: SettingsForm
  inspector: Inspector
  keeper: Keeper
}

export interface Requests {
  /** Resolves with the answer of a turn before it is sent. */
  compose(server: Server, exchanged: Exchanged, signal: AbortSignal): Promise<Answer>
  /** Sends the request of an answer, and shows and keeps the answer as it arrives. */
  exchange(server: Server, answer: Answer, exchanged: Exchanged, signal: AbortSignal): Promise<void>
}

export function createRequests(parts: RequestParts): Requests {
  const { models, loading, settings, inspector, keeper } = parts

  async function compose(
    server: Server,
    { own, turn, prefill }: Exchanged,
    signal: AbortSignal,
  ): Promise<Answer> {
    const { id: model, max_tokens } = await unlessAborted(models.chosen(), signal)
    // The request would load the model, too. This call only shows the progress.
    loading.load(model, { isQuiet: true }).catch(() => {})
    const style = settings.style()
    const question = {
      model,
      modelMaxTokens: max_tokens ?? undefined,
      history: toExchanges(turnsBefore(own, turn)),
      question: turn.question,
      images: turn.images,
      prefill,
      settings: settings.read(),
    }
    const request = style.request(question)
    const url = `${server.baseURL}/${request.path}`
    return { style, url, request, question, raw: '', text: '' }
  }

  async function exchange(
    server: Server,
    answer: Answer,
    { own, turn, turnView, prefill }: Exchanged,
    signal: AbortSignal,
  ): Promise<void> {
    let frame = 0
    const update = (): void => {
      frame = 0
      if (answer.text !== '' || answer.reasoning) {
        turnView.show({ ...answer, text: prefill + answer.text })
      }
      inspector.show(answer)
      keeper.saveLater(own, () => {
        turn.answer = toKeptAnswer(answer, prefill)
        turn.stopped = true
      })
    }
    update()
    const send = server.controlled ? fetch : server.fetch
    try {
      // Tokens can arrive faster than a screen shows them.
      await receive(answer, send, signal, () => (frame ||= requestAnimationFrame(update)))
    } finally {
      cancelAnimationFrame(frame)
      update()
    }
  }

  return { compose, exchange }
}
