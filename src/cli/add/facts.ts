/** What the small files of a model's folder say of it. */
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { ModelEntry } from '../../catalog/schema.ts'
import { refuse } from '../onnx/refuse.ts'

/** What weights need beside themselves when a model runs. */
export const MEMORY_FACTOR = 1.25

/** What its chat template has words for. Any model can be held to a schema. */
export function capabilitiesOf(folder: string, files: readonly { path: string }[]): ModelEntry['capabilities'] {
  const has = (name: string): boolean => files.some(({ path }) => path === name)
  const jinja = 'chat_template.jinja'
  const template = [
    has(jinja) ? readFileSync(join(folder, jinja), 'utf8') : '',
    ...['chat_template.json', 'tokenizer_config.json'].map((name) =>
      has(name) ? JSON.stringify(readJson(join(folder, name))['chat_template'] ?? '') : '',
    ),
  ].join('')
  if (template.replaceAll('"', '') === '') {
    throw refuse(
      `${folder} has no chat template, neither in tokenizer_config.json nor as ${jinja}.`,
      'Take those of the model that it was made of, or add its graph alone.',
    )
  }
  return {
    ...(/\btools\b/.test(template) && { tools: true }),
    ...(/enable_thinking|<think>/.test(template) && { thinking: true }),
    structuredOutputs: true,
  }
}

export function readJson(path: string): Record<string, unknown> {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
  } catch (cause) {
    throw refuse(`${path} is not JSON: ${String(cause)}.`, 'Download it again.', cause)
  }
}

/** `Super resolution` of `models/super_resolution.onnx`. */
export function titleOf(path: string): string {
  const words = basename(path).replace(/\.onnx$/, '').replaceAll(/[_-]+/g, ' ').trim()
  return words ? words.charAt(0).toUpperCase() + words.slice(1) : 'Model'
}
