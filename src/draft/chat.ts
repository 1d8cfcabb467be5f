/**
 * Applies the rules by which the engine loads a chat model to files that are in no catalog yet.
 */
import type { Files } from '../engine/engine.ts'
import { whyUnusable } from '../engine/failure.ts'
import { type Ports, readGraph } from '../engine/onnx/decoder/graph.ts'
import { getModelFiles } from '../engine/onnx/model-files.ts'
import { readVisionFamily } from '../engine/onnx/vision/families.ts'
import { assertValidTemplate } from '../engine/text/template-renderer.ts'
import { type ModelConfig, readConfig } from '../engine/text/config.ts'
import { createPromptBuilder } from '../engine/text/prompt-tokenizer.ts'
import { createDetokenizerFactory } from '../engine/text/vocabulary.ts'
import type { InoriginError } from '../error.ts'
import { type Folder, readText } from './folder.ts'
import type { OnnxModel, Value } from './model.ts'
import type { Item } from './plan.ts'
import { refuse } from './refuse.ts'

const NEEDED = ['config.json', 'tokenizer.json', 'tokenizer_config.json']

/**
 * Reads the configuration, the tokenizer and the chat template as the engine does. Rejects with
 * `invalid_request` if they cannot be used.
 */
export async function checkTexts(
  folder: Folder,
  items: readonly Item[],
  seesImages: boolean,
): Promise<ModelConfig> {
  const missing = NEEDED.find((name) => !items.some((item) => item.name === name))
  if (missing !== undefined) throw refuseMissing(folder, missing)
  const texts: Files = new Map(
    await Promise.all(
      items.map(async ({ name, path, text }) => {
        return [name, new Blob([text ?? (await readText(folder, path))])] as const
      }),
    ),
  )
  try {
    const config = await readConfig(texts)
    createDetokenizerFactory(config.tokenizer, config.tokenizerConfig)
    assertValidTemplate(config.templates.plain)
    assertValidTemplate(config.templates.tools ?? '')
    createPromptBuilder(config, config.contextWindow)
    if (seesImages) await readVisionFamily(texts)
    return config
  } catch (cause) {
    throw toRefusal(
      folder.nameOf(''),
      cause,
      'Correct the file, or copy the tokenizer and configuration of the original model again.',
    )
  }
}

const refuseMissing = (folder: Folder, name: string): InoriginError =>
  name === 'config.json'
    ? refuse(`${folder.nameOf('')} has no ${name}.`, 'Copy it from the original model.')
    : refuse(
        `${folder.nameOf('')} has no ${name}, which a chat model needs.`,
        'Copy it from the original model, or write it in Python with ' +
          '`AutoTokenizer.from_pretrained("<original model>").save_pretrained("<this folder>")`.',
      )

const EXPORT_AGAIN =
  'Export the model again as a decoder of text with a KV cache, such as with ' +
  '`optimum-cli export onnx --task text-generation-with-past`.'

/**
 * Reads the graphs of one implementation as the engine does. Throws `invalid_request` if they are
 * no decoder that it runs. `models` has the graphs by their paths.
 */
export function checkGraphs(
  folder: Folder,
  items: readonly Item[],
  models: ReadonlyMap<string, OnnxModel>,
  { heads, kvHeads, headSize }: Pick<ModelConfig, 'heads' | 'kvHeads' | 'headSize'>,
): void {
  const weights = items.filter(({ type }) => type === 'onnx' || type === 'data')
  let where = folder.nameOf('')
  try {
    const files = getModelFiles(new Map(weights.map((item) => [item.name, item])))
    const { path } = files.decoder.model
    where = folder.nameOf(path)
    const decoder = models.get(path)
    const embed = models.get(files.embed?.model.path ?? '')
    if (!decoder) return
    const ports = embed && { embed: toPorts(embed) }
    readGraph(toPorts(decoder), { ...ports, heads, kvHeads, headSize })
  } catch (cause) {
    throw toRefusal(where, cause, EXPORT_AGAIN)
  }
}

/** Returns the inputs and outputs as the runtime describes them. */
const toPorts = ({ inputs, outputs }: OnnxModel): Ports => ({
  inputs: inputs.map(toMetadata),
  outputs: outputs.map(toMetadata),
})

const toMetadata = ({ name, isTensor, type, shape }: Value): Ports['inputs'][number] =>
  isTensor
    ? ({
        name,
        isTensor,
        type,
        shape: (shape ?? []).map((length) => length ?? ''),
      } as Ports['inputs'][number])
    : { name, isTensor }

/** Returns the refusal of a file that the engine cannot use; other errors as they are. */
export function toRefusal(where: string, cause: unknown, todo: string): unknown {
  const why = whyUnusable(cause)
  return why === null ? cause : refuse(`${where} cannot run as a chat model: ${why}`, todo, cause)
}
