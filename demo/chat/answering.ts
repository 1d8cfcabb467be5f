/** Questions of the chat: each is sent, and its answer is shown and kept. */
import type { Tag } from '../../src/index.ts'
import { notice } from '../notice.ts'
import type { ConversationView } from './conversation.ts'
import type { Current } from './current.ts'
import { explain } from './explain.ts'
import { toKeptAnswer } from './kept.ts'
import { createExchange, type Exchanged, type Outcome, type RequestParts } from './requests.ts'
import { addTurn, touch, type Turn } from './tree.ts'

export interface Answering {
  /**
   * Asks a question after the turn `parent`, a certain model if there is a tag. Does nothing while an
   * answer arrives.
   */
  ask(question: string, images: readonly string[], parent: string | null, tag?: Tag): void
  /** Sends a turn and shows its answer; with `prefill` what follows that text. */
  run(turn: Turn, prefill?: string, tag?: Tag): Promise<void>
}

interface Parts extends RequestParts {
  current: Current
  view: ConversationView
}

export function createAnswering(parts: Parts): Answering {
  const { current, view, keeper } = parts
  const exchange = createExchange(parts)

  async function run(turn: Turn, prefill = '', tag?: Tag): Promise<void> {
    const own = current.conversation
    const started = current.begin(turn)
    if (!started) return
    const { turnView, signal } = started
    const exchanged = { own, turn, turnView, prefill, tag }
    if (prefill === '') view.scrollToEnd()
    keeper.remember(own.id)
    void keeper.save(own)
    const outcome = await exchange(exchanged, signal)
    note(exchanged, outcome, signal.aborted)
    await keeper.save(own)
    // The answer keeps the text that it had, so it shows no error of its own.
    if (outcome.error !== undefined && prefill !== '') notice(explain(outcome.error), 'mild')
    await turnView.end(outcome.error)
    current.end(signal)
  }

  return {
    run,
    ask(question, images, parent, tag) {
      if (current.isBusy) return
      void run(addTurn(current.conversation, { parent, question, images }), '', tag)
    },
  }
}

/** Notes in its turn what an exchange came to. */
function note(
  { own, turn, prefill }: Exchanged,
  { answer, error }: Outcome,
  isStopped: boolean,
): void {
  const isContinued = prefill !== ''
  if (answer) turn.answer = toKeptAnswer(answer, prefill)
  // A continuation that failed can be tried again.
  turn.stopped = isStopped || (isContinued && error !== undefined) || undefined
  if (error !== undefined && !isContinued) turn.error = explain(error)
  touch(own, turn)
}
