/** Reads a model's capabilities and title from the small files and the name of its folder. */
import type { ModelEntry } from '../catalog/schema.ts'
import { readJson, readText, type Folder } from './folder.ts'
import { refuse } from './refuse.ts'

const JINJA = 'chat_template.jinja'

/**
 * Resolves with the capabilities that the chat template supports. Every model has structured
 * outputs. Rejects with `invalid_request` without a chat template, unless `hasOtherWay` is set.
 */
export async function capabilitiesOf(
  folder: Folder,
  hasOtherWay = false,
): Promise<ModelEntry['capabilities']> {
  const has = (path: string): boolean => folder.sizeOf(path) !== undefined
  const templates = has(JINJA) ? [await readText(folder, JINJA)] : []
  for (const path of ['chat_template.json', 'tokenizer_config.json'].filter(has)) {
    templates.push(JSON.stringify((await readJson(folder, path))['chat_template'] ?? ''))
  }
  const template = templates.join('')
  if (template.replaceAll('"', '') === '' && !hasOtherWay) {
    throw refuse(
      `${folder.nameOf('')} has no chat template, neither in tokenizer_config.json nor as ${JINJA}.`,
      'Copy them from the original model, or add its graph alone.',
    )
  }
  return {
    ...(/\btools\b/.test(template) && { tools: true }),
    ...(/enable_thinking|<think>/.test(template) && { thinking: true }),
    structuredOutputs: true,
  }
}

/** Returns a title for a path, such as `Super resolution` for `models/super_resolution.onnx`. */
export function titleOf(path: string): string {
  const name = path.replace(/\/+$/, '').replace(/^.*\//, '')
  const words = name
    .replace(/\.onnx$/, '')
    .replaceAll(/[_-]+/g, ' ')
    .trim()
  return words ? words.charAt(0).toUpperCase() + words.slice(1) : 'Model'
}
