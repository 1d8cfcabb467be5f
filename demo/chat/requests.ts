/** Requests of the chat: a turn as a request, and its answer as it arrives. */
import type { Server, Tag } from '../../src/index.ts'
import type { Inspector } from '../inspector.ts'
import { GUIDE } from '../listing.ts'
import type { Loading } from '../loading.ts'
import type { Models } from '../models.ts'
import type { SettingsForm } from '../settings.ts'
import { withSystem } from '../smollm2.ts'
import { unlessAborted } from '../task.ts'
import type { Tools } from '../tools/index.ts'
import { receive, type Answer } from '../wire/answer.ts'
import type { Announcer } from './announcer.ts'
import type { Keeper } from './keeper.ts'
import { toExchanges, toKeptAnswer } from './kept.ts'
import { routeQuestion, type Route } from './route.ts'
import { turnsBefore, type Conversation, type Turn } from './tree.ts'
import type { TurnView } from './turn.ts'

/** The objects that an exchange changes. */
export interface Exchanged {
  own: Conversation
  turn: Turn
  turnView: TurnView
  /** Text of the answer that the model continues; empty for a new answer. */
  prefill: string
  /** Model that answers in any case. Default: the selected one, or the one that knows the subject. */
  tag?: Tag | undefined
}

/** End of an exchange: its last answer, if a request was composed, and its error. */
export interface Outcome {
  answer?: Answer
  /** Absent if the user stopped the answer. */
  error?: unknown
}

export interface RequestParts {
  server: Promise<Server>
  models: Models
  loading: Loading
  settings: SettingsForm
  inspector: Inspector
  tools: Tools
  keeper: Keeper
  announcer: Announcer
}

/**
 * Returns the function that sends a turn, and the requests that follow from its tool calls. It shows
 * and keeps the answer as it arrives, and never rejects.
 */
export function createExchange(
  parts: RequestParts,
): (exchanged: Exchanged, signal: AbortSignal) => Promise<Outcome> {
  const { inspector, tools, keeper, announcer } = parts

  /** Sends the request of an answer, and shows and keeps the answer as it arrives. */
  async function send(
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
      announcer.follow(answer.text)
      inspector.show(answer)
      keeper.saveLater(own, () => {
        turn.answer = toKeptAnswer(answer, prefill)
        turn.stopped = true
      })
    }
    update()
    const ask = server.controlled ? fetch : server.fetch
    try {
      // Tokens can arrive faster than a screen shows them.
      await receive(answer, ask, signal, () => (frame ||= requestAnimationFrame(update)))
    } finally {
      cancelAnimationFrame(frame)
      update()
      announcer.end(answer.text)
    }
  }

  return async (exchanged, signal) => {
    const { turnView, prefill } = exchanged
    let answer: Answer | undefined
    const waiting = new AbortController()
    if (prefill === '') keeper.setWaiting(exchanged.turn.question)
    try {
      turnView.waiting('Starting the server')
      const server = await unlessAborted(parts.server, signal).finally(() =>
        keeper.setWaiting(undefined),
      )
      answer = await compose(parts, server, exchanged, signal)
      followLoad(parts, server, answer, exchanged, waiting.signal).catch(() => {})
      const sendNext = (next: Answer): Promise<void> =>
        send(server, (answer = next), exchanged, signal)
      // A prefilled answer continues in words, so it offers no tools.
      if (prefill === '') await tools.converse(answer, turnView, sendNext, signal)
      else await sendNext(answer)
      return { answer }
    } catch (error) {
      return { answer, error: signal.aborted ? undefined : error }
    } finally {
      waiting.abort()
    }
  }
}

/** Names what an answer waits for, until it begins: the load of its model, then the prefill of its prompt. */
async function followLoad(
  { loading }: RequestParts,
  { models }: Server,
  answer: Answer,
  { turn, turnView }: Exchanged,
  signal: AbortSignal,
): Promise<void> {
  const say = (words: string): void => {
    if (answer.firstText === undefined && !signal.aborted) turnView.waiting(words)
  }
  const reading = `Reading your question${turn.images.length > 0 ? ' and its image' : ''}`
  say(reading)
  const model = String(answer.request.body['model'])
  const states = await models.list()
  const isLoaded = states.some(({ tag, status }) => tag === model && status === 'loaded')
  // A load of another model may go on.
  if (isLoaded || signal.aborted) return
  // The request would load the model, too. This call only shows the progress.
  await loading.load(model, { isQuiet: true, onPhase: say })
  say(reading)
}

/** Resolves with the answer of a turn before it is sent. */
async function compose(
  parts: RequestParts,
  server: Server,
  exchanged: Exchanged,
  signal: AbortSignal,
): Promise<Answer> {
  const { models, settings, tools } = parts
  const { own, turn, turnView, prefill } = exchanged
  turnView.waiting('Choosing a model')
  const { tag: model, sources } = await unlessAborted(chooseModel(parts, server, exchanged), signal)
  const listed = await models.find(model)
  const style = settings.style()
  const rounds = prefill === '' ? undefined : turn.answer?.rounds
  const question = {
    model,
    modelMaxTokens: listed?.max_tokens ?? undefined,
    // The page chose another model for this one question, whose context may be smaller.
    history: sources ? [] : toExchanges(turnsBefore(own, turn)),
    question: turn.question,
    images: turn.images,
    rounds,
    prefill,
    settings: tools.hasTools() ? settings.read() : withSystem(model, settings.read()),
  }
  const request = style.request(question)
  const url = `${server.baseURL}/${request.path}`
  return { style, url, request, question, raw: '', text: '', rounds, sources }
}

/** Resolves with who answers a turn: who began to, else who was asked for, else who knows the subject. */
async function chooseModel(
  { models, settings, tools }: RequestParts,
  server: Server,
  { turn, prefill, tag }: Exchanged,
): Promise<Route> {
  const { sources } = turn.answer ?? {}
  if (prefill !== '' && sources) return { tag: GUIDE, sources }
  const chosen = await models.chosen()
  if (tag !== undefined || prefill !== '') return { tag: tag ?? chosen.id }
  const { question, images } = turn
  const hasTools = tools.hasTools()
  return routeQuestion(server, { chosen, question, images, settings: settings.read(), hasTools })
}
