/** Results of a comparison, and their export. */
import { duration, rate } from '../format.ts'
import type { Exchange } from '../wire/style.ts'

/** Settings of the requests of one column. An absent setting has the default of the model. */
export interface ColumnSettings {
  model: string
  system?: string
  temperature?: number
  maxTokens?: number
  seed?: number
}

export interface ColumnResult {
  settings: ColumnSettings
  text: string
  /** Finish reason of the endpoint. Absent if the answer was stopped or failed. */
  finish?: string
  error?: string
  promptTokens?: number
  completionTokens?: number
  /** Milliseconds from the request to the first text. */
  firstText?: number
  /** Milliseconds from the request to the end. */
  end?: number
  tokensPerSecond?: number
}

export interface Comparison {
  prompt: string
  /** Exchanges before the prompt. */
  history: readonly Exchange[]
  /** Time of the comparison, in RFC 3339. */
  created: string
  /** `true` if the requests began together, so that they shared the device. */
  together: boolean
  columns: readonly ColumnResult[]
}

/** Returns the figures of a result with their names, in the order in which they are shown. */
export function figuresOf(result: Partial<ColumnResult>): [name: string, figure: string][] {
  const { promptTokens, completionTokens, firstText, tokensPerSecond, end, finish } = result
  const figures: [string, string | undefined][] = [
    ['Tokens', completionTokens?.toString()],
    ['Prompt tokens', promptTokens?.toString()],
    ['First token after', firstText === undefined ? undefined : duration(firstText)],
    ['Tokens/s', tokensPerSecond === undefined ? undefined : rate(tokensPerSecond)],
    ['Ended after', end === undefined ? undefined : duration(end)],
    ['Finish', finish],
  ]
  return figures.filter((figure): figure is [string, string] => figure[1] !== undefined)
}

/** Returns the comparison as JSON. Times are in milliseconds. */
export function toJson(comparison: Comparison): string {
  return `${JSON.stringify(comparison, null, 2)}\n`
}

/** Returns the comparison as Markdown: a table of settings and figures, then the answers. */
export function toMarkdown({ prompt, history, created, together, columns }: Comparison): string {
  const names = [...new Set(columns.flatMap((column) => figuresOf(column).map(([name]) => name)))]
  const heads = columns.map(({ settings }, at) => `${at + 1}. ${cell(settings.model)}`)
  const settings = columns.map((column) => cell(describeSettings(column.settings)))
  const rows = names.map((name) => {
    const figures = columns.map((column) => new Map(figuresOf(column)).get(name) ?? '')
    return toRow(name, figures.map(cell))
  })
  const how = together ? 'The requests began together.' : 'The requests ran one after the other.'
  const lines = [
    '# Comparison',
    '',
    `${created}. ${how}`,
    '',
    ...history.flatMap(({ question, answer }) => [quote(question), '', answer, '']),
    quote(prompt),
    '',
    toRow('', heads),
    toRow(
      '---',
      columns.map(() => '---'),
    ),
    toRow('Settings', settings),
    ...rows,
    '',
    ...columns.flatMap(({ text, error }, at) => [
      `## ${heads[at]}`,
      '',
      text,
      ...(error === undefined ? [] : ['', `Error: ${error}`]),
      '',
    ]),
  ]
  return `${lines.join('\n').trimEnd()}\n`
}

/** Returns the settings that differ from the defaults, in one line. */
function describeSettings(settings: ColumnSettings): string {
  const given = Object.entries(settings).filter(
    ([name, value]) => name !== 'model' && value !== undefined,
  )
  return given.length === 0
    ? 'defaults'
    : given.map(([name, value]) => `${name} ${JSON.stringify(value)}`).join(', ')
}

const toRow = (name: string, cells: readonly string[]): string =>
  `| ${name} | ${cells.join(' | ')} |`

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

const quote = (text: string): string => text.replaceAll(/^/gm, '> ')
