/** An answer of the wire as the conversation keeps it, and the conversation as the wire takes it. */
import type { Answer } from '../wire/answer.ts'
import type { Exchange } from '../wire/style.ts'
import type { KeptAnswer, Turn } from './tree.ts'

/** Returns an answer to keep, with the text that it continues. */
export function toKeptAnswer(answer: Answer, prefill: string): KeptAnswer {
  return {
    text: prefill + answer.text,
    reasoning: answer.reasoning,
    rounds: answer.rounds,
    sources: answer.sources,
    model: String(answer.request.body['model']),
    url: new URL(answer.url).pathname,
    finish: answer.finish,
    promptTokens: answer.promptTokens,
    cachedTokens: answer.cachedTokens,
    completionTokens: answer.completionTokens,
    reasoningTokens: answer.reasoningTokens,
    firstText: answer.firstText,
    reasoningTime: answer.reasoningTime,
    end: answer.end,
  }
}

/** Returns the exchanges of turns. One without an answer is left out. */
export function toExchanges(turns: readonly Turn[]): Exchange[] {
  return turns.flatMap(({ question, images, answer }) =>
    answer?.text ? [{ question, images, rounds: answer.rounds, answer: answer.text }] : [],
  )
}
