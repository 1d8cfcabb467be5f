/**
 * The formats in which models call tools. Each defines how to detect it in a chat template, the
 * constraints of an answer, and how to read and write a call. Calls are parsed while they arrive:
 * `parser.ts` finds a format's triggers, and readers wait for more text where they need it.
 */
import { granite, llama } from './json.ts'
import { hermes, xml } from './tagged.ts'
import { lfm } from './lfm.ts'
import { MARKED_FORMATS } from './marked.ts'
import { mistral, mistralArgs } from './mistral.ts'
import type { ToolFormat } from './format.ts'

export { callableTools, larkOf, toolConstraint, type ToolFormat } from './format.ts'

/** All formats, specific ones first: their templates may contain the markers of simpler formats. */
export const FORMATS: readonly ToolFormat[] = [
  lfm,
  ...MARKED_FORMATS,
  mistralArgs,
  mistral,
  granite,
  xml,
  hermes,
  llama,
]

/** Returns the format that a chat template teaches; `null` if it is unknown. */
export const detectFormat = (template: string): ToolFormat | null =>
  FORMATS.find((format) => format.detect(template)) ?? null
