/** Drafts a chat model from a GGUF file, or from all parts of a split one. */
import * as v from 'valibot'
import { toTokenLimits } from '../catalog/hub/resolve-hub.ts'
import { estimateMemoryBytes } from '../catalog/memory-bytes.ts'
import { languageSchema } from '../catalog/value-schemas.ts'
import { describeModel } from '../engine/gguf/card.ts'
import { type ByteSource, type Gguf, readGguf } from '../engine/gguf/header.ts'
import { toModelFiles } from '../engine/gguf/model-files.ts'
import { joinParts } from '../engine/gguf/parts.ts'
import { planGguf as planGraph } from '../engine/onnx/gguf/convert.ts'
import { InoriginError } from '../error.ts'
import { checkTexts, toRefusal } from './chat.ts'
import { type Folder, listPartPaths, type OpenFile } from './folder.ts'
import {
  type Item,
  type Plan,
  type PlanOptions,
  refuseTensors,
  titleOf,
  toCapabilities,
  toPlanned,
} from './plan.ts'
import { refuse } from './refuse.ts'

/** Resolves with the plan of a GGUF file. Rejects with `invalid_request` if it cannot run. */
export async function planGguf(folder: Folder, path: string, options: PlanOptions): Promise<Plan> {
  const { devices, dtypes } = options
  if (dtypes !== null) {
    const what = '--dtypes chooses among the graphs of a folder, and this is one model.'
    throw refuse(what, 'Leave it out.')
  }
  refuseTensors(options)
  const weights = listParts(folder, path)
  const { metadata, bytes } = await readParts(folder, weights)
  const texts = toTexts(folder, path, metadata)
  const config = await checkTexts(folder, texts, false).catch((cause: unknown) => {
    throw InoriginError.from(cause).code === 'no_chat_template'
      ? refuse(
          `${folder.nameOf(path)} has no chat template (\`tokenizer.chat_template\`).`,
          'Choose a file of the model for chats, whose name often ends in "instruct" or "it".',
          cause,
        )
      : cause
  })
  const card = describeModel(metadata)
  const { name = titleOf(path.replace(/\.gguf$/i, '')), license, size, quantization } = card
  const languages = card.languages?.filter((language) => v.is(languageSchema, language)) ?? []
  const { plain, tools } = config.templates
  const id = quantization?.toLowerCase() ?? 'gguf'
  const requires = { memory: estimateMemoryBytes([{ bytes }]) }
  return {
    entry: {
      type: 'model',
      name,
      ...(license !== undefined && { license }),
      ...(languages.length > 0 && { languages }),
      ...(size !== undefined && { parameters: size }),
      ...(quantization !== undefined && { quantization }),
      ...toTokenLimits({ maxInputTokens: null, maxOutputTokens: null }, config.contextWindow),
      capabilities: toCapabilities(plain + (tools ?? '')),
    },
    implementations: devices.map((device) => ({
      ...toPlanned(`${id}-${device}`, device, false, [...texts, ...weights]),
      // The weights have another size in the form in which they are computed with.
      requires,
    })),
    notes: [],
  }
}

/** Returns the file, with the other parts of a split one. Throws `invalid_request` if one is missing. */
function listParts(folder: Folder, path: string): Item[] {
  return listPartPaths(path).map((part) => {
    const bytes = folder.sizeOf(part)
    // The engine knows the file by this end of its name.
    const name = part.replace(/\.gguf$/i, '.gguf')
    if (bytes !== undefined) return { type: 'gguf', name, path: part, bytes }
    throw refuse(
      `There is no ${folder.nameOf(part)}.`,
      'Put all parts of the file into one folder.',
    )
  })
}

/**
 * Resolves with the metadata of the first part, and the bytes of the weights that are computed with.
 * Rejects if a part or the architecture cannot be read.
 */
async function readParts(folder: Folder, parts: readonly Item[]) {
  const files: OpenFile[] = []
  const heads: { source: ByteSource; head: Gguf }[] = []
  let where = ''
  try {
    for (const { path } of parts) {
      where = folder.nameOf(path)
      const file = await folder.open(path)
      files.push(file)
      const source: ByteSource = { size: file.size, read: (from, to) => file.read(from, to) }
      heads.push({ source, head: await readGguf(source) })
    }
    const { source, gguf } = joinParts(heads)
    const { signal } = new AbortController()
    const { bytes } = await planGraph(source, gguf, { signal })
    return { metadata: gguf.metadata, bytes }
  } catch (cause) {
    throw toRefusal(where, cause, 'Download it again, or choose another file.')
  } finally {
    for (const file of files) await file.close()
  }
}

/** Returns the files of configuration and tokenizer, which are made from the metadata. */
function toTexts(folder: Folder, path: string, metadata: Gguf['metadata']): Item[] {
  const utf8 = new TextEncoder()
  try {
    return Array.from(toModelFiles(metadata), ([name, text]): Item => {
      const type = name.startsWith('tokenizer') ? 'tokenizer' : 'config'
      return { type, name, path: name, bytes: utf8.encode(text).length, text }
    })
  } catch (cause) {
    throw toRefusal(folder.nameOf(path), cause, 'Choose another file of the model.')
  }
}
