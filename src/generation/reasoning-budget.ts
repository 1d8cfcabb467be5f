/** Splits the reasoning off an answer, counts its tokens and enforces its budget. */
import type { TextChunk } from '../engine/engine.ts'
import type { GenerationPlan } from './plan.ts'
import { createReasoningSplitter, type Split } from './reasoning.ts'

interface BudgetedReasoning {
  /** Number of tokens of reasoning. The marks of an empty block do not count. */
  readonly tokens: number
  /** `true` while the reasoning is open. */
  readonly isOpen: boolean
  push(piece: TextChunk): Split
  /** Returns the text that was held back as the possible beginning of a mark. */
  end(): Split
  /** Returns the text that closes the reasoning, once, when the budget is used up. */
  takeClosing(): string | undefined
}

export function createBudgetedReasoning({
  tags,
  isOpen,
  budget,
}: NonNullable<GenerationPlan['reasoning']>): BudgetedReasoning {
  const splitter = createReasoningSplitter(tags, isOpen)
  let tokens = 0
  let hasText = false
  let isClosing = false

  const noteText = (split: Split): Split => {
    hasText ||= split.reasoning !== ''
    return split
  }

  return {
    get tokens() {
      return hasText ? tokens : 0
    },
    get isOpen() {
      return splitter.isOpen
    },
    push(piece) {
      const wasOpen = splitter.isOpen
      const split = noteText(splitter.push(piece.text))
      // The budget limits the model's own reasoning. The closing mark that we append does not count.
      if ((wasOpen || splitter.isOpen) && !isClosing) tokens += piece.tokens
      return split
    },
    end: () => noteText(splitter.end()),
    takeClosing() {
      if (!splitter.isOpen || isClosing || tokens < budget) return undefined
      isClosing = true
      return `\n${tags.close}\n\n`
    },
  }
}
