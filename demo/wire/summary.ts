import { duration, rate } from '../format.ts'
import { tokensPerSecond, type Answer } from './answer.ts'

/** Finish reasons of all styles for an answer that ended at the token limit. */
const CUT = new Set(['length', 'max_tokens', 'max_output_tokens'])

/** The fields of an answer that its summary needs. */
export type Facts = Pick<
  Answer,
  | 'finish'
  | 'promptTokens'
  | 'cachedTokens'
  | 'completionTokens'
  | 'reasoningTokens'
  | 'firstText'
  | 'reasoningTime'
  | 'end'
>

/** Returns `true` if the answer ended at the token limit. */
export function isCut({ finish }: Facts): boolean {
  return finish !== undefined && CUT.has(finish)
}

/** Returns one line about an answer: its length and speed. */
export function summary(answer: Facts & Pick<Answer, 'text'>): string {
  const { completionTokens, promptTokens, cachedTokens, firstText, finish, text } = answer
  const speed = tokensPerSecond(answer)
  const facts: string[] = []
  if (completionTokens !== undefined) facts.push(tokens(completionTokens))
  if (speed !== undefined) facts.push(`${rate(speed)} tokens/s`)
  if (firstText !== undefined) facts.push(`first token after ${duration(firstText)}`)
  if (promptTokens !== undefined) {
    facts.push(`prompt of ${tokens(promptTokens)}${cachedTokens ? `, ${cachedTokens} cached` : ''}`)
  }
  if (text === '' && finish !== undefined) facts.push('an empty answer')
  if (isCut(answer)) facts.push('cut at the token limit')
  return facts.join(' · ')
}

const tokens = (count: number): string => `${count} ${count === 1 ? 'token' : 'tokens'}`
