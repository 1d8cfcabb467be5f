/** Actions of the user on a turn of the conversation. */
import type { Tag } from '../../src/index.ts'
import type { Composer } from '../composer.ts'
import type { Models } from '../models.ts'
import { notice } from '../notice.ts'
import type { SettingsForm } from '../settings.ts'
import { GUIDE } from '../listing.ts'
import { SMOLLM2 } from '../smollm2.ts'
import { AnswerError } from '../wire/answer.ts'
import type { Answering } from './answering.ts'
import type { Current } from './current.ts'
import type { Keeper } from './keeper.ts'
import { NOT_DOCUMENTED } from './route.ts'
import { branchesOf, choose, createConversation, removeTurn, type Turn } from './tree.ts'
import type { Action, TurnActions } from './turn.ts'

const CANNOT_CONTINUE =
  'The style Responses cannot continue an answer. Choose another one under Requests.'

interface Parts {
  current: Current
  answering: Answering
  keeper: Keeper
  models: Models
  settings: SettingsForm
  composer: Composer
}

/** Returns the function that returns the actions of a turn. While an answer arrives they do nothing. */
export function createTurnActions(parts: Parts): (turn: Turn) => TurnActions {
  const { current, answering, keeper, settings } = parts
  return (turn) => ({
    edit: (question) => answering.ask(question, turn.images, turn.parent),
    regenerate: () => answering.ask(turn.question, turn.images, turn.parent),
    askLarger() {
      if (current.isBusy) return
      parts.models.select(SMOLLM2)
      answering.ask(turn.question, turn.images, turn.parent, SMOLLM2)
    },
    resume() {
      const { answer } = turn
      if (current.isBusy || !answer) return
      if (settings.style().canContinue) return void answering.run(turn, answer.text.trimEnd())
      notice(CANNOT_CONTINUE, 'mild')
    },
    remove() {
      if (current.isBusy) return
      removeTurn(current.conversation, turn)
      current.render()
      void keeper.save(current.conversation)
      parts.composer.focus()
    },
    step(step) {
      if (current.isBusy) return
      const { conversation } = current
      const branches = branchesOf(conversation, turn)
      const next = branches[branches.indexOf(turn) + step]
      if (!next) return
      choose(conversation, next)
      current.render().get(next)?.branches.focus(step)
      void keeper.save(conversation)
    },
    after: (error) => remediesOf(turn, error, parts),
    offer: (error) => offerLarger(turn, error, parts),
  })
}

/** Words with which the guide says that it cannot do something. */
const REFUSAL = /^(sorry, )?I (don't know|can only|only speak|know English only)/i

/** Resolves with the model that is recommended for this device, if the guide could not answer. */
async function offerLarger(
  turn: Turn,
  error: unknown,
  { current, answering, models }: Parts,
): Promise<Action | undefined> {
  const { answer } = turn
  const isRefused = answer?.model === GUIDE && REFUSAL.test(answer.text)
  const isUnasked = error instanceof AnswerError && error.code === NOT_DOCUMENTED
  if (!isRefused && !isUnasked) return undefined
  const found = await models.recommended().catch(() => undefined)
  // It has a button of its own there.
  if (!found || (isUnasked && found.tag === SMOLLM2)) return undefined
  const { tag, name, size, isHere } = found
  return {
    label: isHere ? `Use ${name}` : `Use ${name} · ${size}`,
    run() {
      if (current.isBusy) return
      models.select(tag)
      if (isUnasked) removeTurn(current.conversation, turn)
      answering.ask(turn.question, turn.images, turn.parent, tag)
    },
  }
}

function remediesOf(turn: Turn, error: unknown, { current, answering, models }: Parts): Action[] {
  if (error instanceof AnswerError && error.code === 'context_length_exceeded') {
    return [{ label: 'New chat', run: () => current.show(createConversation()) }]
  }
  const again = (tag?: Tag): void => {
    if (current.isBusy) return
    removeTurn(current.conversation, turn)
    answering.ask(turn.question, turn.images, turn.parent, tag)
  }
  if (error instanceof AnswerError && error.code === NOT_DOCUMENTED) {
    const useLarger = (): void => {
      models.select(SMOLLM2)
      again(SMOLLM2)
    }
    return [
      { label: 'Use SmolLM2 135M', run: useLarger },
      { label: 'Ask the guide', run: () => again(GUIDE) },
    ]
  }
  const askAgain = { label: 'Ask again', run: () => again() }
  if (error === undefined) return [askAgain]
  if (error instanceof AnswerError) return [askAgain, ...models.remedies()]
  return [askAgain, { label: 'Reload the page', run: () => location.reload() }]
}
