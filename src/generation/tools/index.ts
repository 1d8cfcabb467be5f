/**
 * The formats in which models call tools. Each (`hermes.ts` and those beside it) says by which marks a
 * chat template teaches it, what an answer in it may be, as constraints, how to read a call, and how
 * to write one. Calls are read while they arrive: `parser.ts` looks for a format's triggers, and its
 * readers are generators that wait for more text where they need it (`reading.ts`).
 */
import { granite } from './granite.ts'
import { hermes } from './hermes.ts'
import { lfm } from './lfm.ts'
import { llama } from './llama.ts'
import { mistral, mistralArgs } from './mistral.ts'
import type { ToolFormat } from './format.ts'
import { xml } from './xml.ts'

export { callable, type ToolFormat, toolConstraint } from './format.ts'

/** The more particular first, as templates of several may hold the marks of the plainer ones. */
export const FORMATS: readonly ToolFormat[] = [
  lfm,
  mistralArgs,
  mistral,
  granite,
  xml,
  hermes,
  llama,
]

/** The format that a chat template teaches; `null` where it is none of these. */
export const detectFormat = (template: string): ToolFormat | null =>
  FORMATS.find((format) => format.detect(template)) ?? null
