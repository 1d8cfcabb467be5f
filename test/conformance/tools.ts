/** Two tools and a format, as users write them. */
import * as z from 'zod'
import type { Call } from './client.ts'
import { ensure } from './judge.ts'

export const WEATHER = {
  name: 'weather',
  description: 'The weather in a city',
  input: z.strictObject({ city: z.enum(['Oslo', 'Paris']), unit: z.enum(['C', 'F']) }),
}

export const CLOCK = {
  name: 'clock',
  description: 'The time of a zone',
  input: z.strictObject({ zone: z.enum(['utc', 'local']) }),
}

export const TOOLS = [WEATHER, CLOCK] as const

/** What an answer of a schema looks like. Not all helpers send more than types. */
export const REPORT = z.strictObject({ sunny: z.boolean(), windy: z.boolean() })

/** The call is of one of the tools, with arguments of its schema. */
export function judgeCall({ id, name, input }: Call): void {
  ensure(typeof id === 'string' && id.length >= 8, `a call has the id ${id}`)
  const tool = TOOLS.find((each) => each.name === name)
  ensure(tool !== undefined, `a call of ${name}, which is no tool`)
  const { success } = tool.input.safeParse(input)
  ensure(success, `${name} was called with ${JSON.stringify(input)}`)
}
