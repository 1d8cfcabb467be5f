import type { Effort, EffortName } from './result.ts'

/** Amounts of work to choose from. */
export const EFFORTS: Readonly<Record<EffortName, Effort>> = {
  short: {
    rounds: 1,
    answerSeconds: 0.5,
    promptTokens: 128,
    longContextTokens: 256,
    predictions: 5,
  },
  normal: {
    rounds: 3,
    answerSeconds: 2,
    promptTokens: 512,
    longContextTokens: 1_800,
    predictions: 20,
  },
  thorough: {
    rounds: 7,
    answerSeconds: 4,
    promptTokens: 512,
    longContextTokens: 1_800,
    predictions: 50,
  },
}
