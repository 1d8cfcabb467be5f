/** Drafts a chat model from a GGUF file, or from all parts of a split one. */
import { toTokenLimits } from '../catalog/hub/resolve-hub.ts'
import { describeModel } from '../engine/gguf/card.ts'
import { type ByteSource, type Gguf, readGguf } from '../engine/gguf/header.ts'
import { toModelFiles } from '../engine/gguf/model-files.ts'
import { planGguf as planGraph } from '../engine/onnx/gguf/convert.ts'
import { InoriginError } from '../error.ts'
import { checkTexts, toRefusal } from './chat.ts'
import type { Folder } from './folder.ts'
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
  const { metadata } = await readParts(folder, weights)
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
  const { name = titleOf(path.replace(/\.gguf$/i, '')), quantization = 'gguf' } =
    describeModel(metadata)
  const { plain, tools } = config.templates
  const id = quantization.toLowerCase()
  return {
    entry: {
      type: 'model',
      name,
      ...toTokenLimits({ maxInputTokens: null, maxOutputTokens: null }, config.contextWindow),
      capabilities: toCapabilities(plain + (tools ?? '')),
    },
    implementations: devices.map((device) =>
      toPlanned(`${id}-${device}`, device, false, [...texts, ...weights]),
    ),
    notes: [],
  }
}

/** Returns the file, with the other parts of a split one. Throws `invalid_request` if one is missing. */
function listParts(folder: Folder, path: string): Item[] {
  const [, before = '', , count = ''] = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/i.exec(path) ?? []
  const paths =
    count === ''
      ? [path]
      : Array.from({ length: Math.min(Number(count), MAX_PARTS) }, (_, index) => {
          return `${before}-${String(index + 1).padStart(5, '0')}-of-${count}.gguf`
        })
  return paths.map((part) => {
    const bytes = folder.sizeOf(part)
    if (bytes !== undefined) return { type: 'gguf', name: part, path: part, bytes }
    throw refuse(
      `There is no ${folder.nameOf(part)}.`,
      'Put all parts of the file into one folder.',
    )
  })
}

/** Greatest number of parts; a guess. */
const MAX_PARTS = 1_000

/** Resolves with the head of the first part. Rejects if a part or the architecture cannot be read. */
async function readParts(folder: Folder, parts: readonly Item[]): Promise<Gguf> {
  const heads: Gguf[] = []
  for (const { path } of parts) {
    const file = await folder.open(path)
    try {
      const source: ByteSource = { size: file.size, read: (from, to) => file.read(from, to) }
      const head = await readGguf(source)
      heads.push(head)
      const { signal } = new AbortController()
      if (parts.length === 1) await planGraph(source, head, { signal })
    } catch (cause) {
      throw toRefusal(folder.nameOf(path), cause, 'Download it again, or choose another file.')
    } finally {
      await file.close()
    }
  }
  const [first] = heads
  if (first) return first
  throw refuse(`${folder.nameOf('')} has no GGUF file.`, 'Check its files.')
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
