/** What the small files of a model's folder say of it. */
import type { ModelEntry } from '../../catalog/schema.ts'
import { readJson, readText, type Folder } from './folder.ts'
import { refuse } from './refuse.ts'

const JINJA = 'chat_template.jinja'

/**
 * What its chat template has words for. Any model can be held to a schema. Throws `invalid_request` where
 * it has none, unless its conversations are written in another way.
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
      'Take those of the model that it was made of, or add its graph alone.',
    )
  }
  return {
    ...(/\btools\b/.test(template) && { tools: true }),
    ...(/enable_thinking|<think>/.test(template) && { thinking: true }),
    structuredOutputs: true,
  }
}

/** `Super resolution` of `models/super_resolution.onnx`. */
export function titleOf(path: string): string {
  const name = path.replace(/\/+$/, '').replace(/^.*\//, '')
  const words = name
    .replace(/\.onnx$/, '')
    .replaceAll(/[_-]+/g, ' ')
    .trim()
  return words ? words.charAt(0).toUpperCase() + words.slice(1) : 'Model'
}
