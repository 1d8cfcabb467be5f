/** The tools that come with the playground. All of them run in this page. */
import { calculate } from './calculator.ts'
import { readPageText } from './page-text.ts'
import { runSandboxed } from './sandbox.ts'
import type { Tool } from './types.ts'

const object = (
  properties: Record<string, unknown>,
  required = Object.keys(properties),
): Record<string, unknown> => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})

export const BUILT_IN: readonly Tool[] = [
  {
    name: 'calculator',
    description: 'Calculates an arithmetic expression',
    parameters: object({
      expression: { type: 'string', description: 'Expression, such as 12 * (3 + 4)' },
    }),
    run: async ({ expression }) => String(calculate(String(expression))),
  },
  {
    name: 'clock',
    description: 'Tells the current date and time',
    parameters: object(
      { time_zone: { type: 'string', description: 'Time zone, such as Europe/Oslo' } },
      [],
    ),
    run: async ({ time_zone }) => tellTime(time_zone),
  },
  {
    name: 'read_page',
    description: 'Reads a text file of this site',
    parameters: object({ path: { type: 'string', description: 'Path, such as /llms.txt' } }),
    run: ({ path }, signal) => readPageText(String(path), signal),
  },
  {
    name: 'javascript',
    description: 'Runs JavaScript and returns its result',
    parameters: object({
      code: { type: 'string', description: 'Expression, or statements with a return' },
    }),
    run: ({ code }, signal) => runSandboxed(String(code), {}, { signal }),
  },
]

function tellTime(timeZone: unknown): string {
  const zone = typeof timeZone === 'string' && timeZone !== '' ? timeZone : undefined
  try {
    const options = { dateStyle: 'full', timeStyle: 'long', timeZone: zone } as const
    return new Intl.DateTimeFormat('en', options).format(new Date())
  } catch {
    throw new Error(`Unknown time zone "${zone}". Use a name such as Europe/Oslo.`)
  }
}
