import { duration, rate } from '../format.ts'
import { tokensPerSecond, type Answer } from './answer.ts'

/** Finish reasons of both styles for an answer that ended at the token limit. */
const CUT = new Set(['length', 'max_tokens'])

/** Returns one line about an answer: its endpoint, length and speed. */
export function summary(answer: Answer): string {
  const { completionTokens, firstText, finish, text } = answer
  const speed = tokensPerSecond(answer)
  const facts = [new URL(answer.url).pathname]
  if (completionTokens !== undefined) {
    facts.push(`${completionTokens} ${completionTokens === 1 ? 'token' : 'tokens'}`)
  }
  if (speed !== undefined) facts.push(`${rate(speed)} tokens/s`)
  if (firstText !== undefined) facts.push(`first token after ${duration(firstText)}`)
  if (text === '' && finish !== undefined) facts.push('an empty answer')
  if (finish !== undefined && CUT.has(finish)) facts.push('cut at the token limit')
  return facts.join(' · ')
}
