/** The command `inorigin add`. */
import { DTYPES } from '../../catalog/schema.ts'
import { add, type AddOptions } from '../add.ts'
import { BINDING_OPTIONS, parseBindingFlags } from '../add/binding-flags.ts'
import { defineCommand } from '../command.ts'
import { deferInterrupts } from '../interrupts.ts'
import { printLines } from '../output.ts'
import { DIST, findRuntime } from '../package-files.ts'
import { createProgress } from '../progress.ts'
import { getPublicFolder } from '../project-options.ts'
import { formatAddReport } from '../report.ts'
import { createUsageError } from '../usage.ts'

/** Default limit of file sizes in bytes. Hosts of static sites allow 25 MB or more. */
const MAX_FILE_BYTES = 25_000_000

const DEVICES = ['webgpu', 'wasm'] as const

export const ADD = defineCommand({
  name: 'add',
  operands: [
    {
      name: 'model.onnx|folder',
      about: 'The model, or the folder that holds it',
      isRequired: true,
    },
  ],
  usage: '--tag @me/name [options]',
  about: [
    'Adds an ONNX model to your app as a predictor: drafts its signature from the inputs and',
    'outputs of the graph, tests it in the runtime, copies its files to',
    '<public>/inorigin/@me/name and lists it in <public>/inorigin/catalog.json. A folder with',
    'config.json, tokenizer.json and onnx/ becomes a chat model or a text encoder. A folder of',
    'a model compiled by MLC, with its library, becomes a chat model that WebLLM runs.',
  ],
  options: {
    tag: {
      type: 'string',
      value: '<tag>',
      about: 'Name that requests use for the model, such as @me/name',
    },
    name: { type: 'string', value: '<name>', about: 'Display name (default: the file name)' },
    public: {
      type: 'string',
      value: '<folder>',
      about: "Your app's public folder (default: the one passed to init)",
    },
    'max-file-bytes': {
      type: 'string',
      value: '<n>',
      about: `Split larger files, for hosts with a limit (default: ${MAX_FILE_BYTES})`,
    },
    device: {
      type: 'string',
      value: '<device>',
      about: 'Use only webgpu, or only wasm (default: both)',
    },
    dtypes: {
      type: 'string',
      value: '<list>',
      about: 'Add only these precisions of a folder, such as q4,q4f16',
    },
    tensor: {
      type: 'string',
      multiple: true,
      value: '<input>',
      about: 'Keep an input that looks like an image as a tensor; may be repeated',
    },
    ...BINDING_OPTIONS,
    force: { type: 'boolean', about: 'Replace an entry of that tag and its files' },
  },
  async run(flags, [source = '']) {
    const { tag, name, force = false, tensor: tensors = [] } = flags
    if (tag === undefined)
      throw createUsageError(`Name a tag for the model: inorigin add ${source} --tag @me/name`)
    const progress = createProgress(process.stderr)
    const options: AddOptions = {
      source,
      tag,
      name,
      force,
      tensors,
      wishes: parseBindingFlags(flags),
      publicDir: getPublicFolder(flags.public),
      maxFileBytes: parseByteCount('--max-file-bytes', flags['max-file-bytes']) ?? MAX_FILE_BYTES,
      devices:
        flags.device === undefined
          ? ['webgpu', 'wasm']
          : [parseChoice('--device', flags.device, DEVICES)],
      dtypes: flags.dtypes?.split(',').map((one) => parseChoice('--dtypes', one, DTYPES)) ?? null,
      dist: DIST,
      runtime: findRuntime,
      signal: deferInterrupts(),
      onStep: progress.step,
    }
    const result = await add(options).finally(progress.end)
    return printLines(...formatAddReport(result, options))
  },
})

function parseChoice<T extends string>(option: string, value: string, possible: readonly T[]): T {
  const found = possible.find((one) => one === value)
  if (found !== undefined) return found
  throw createUsageError(`${option} takes ${possible.join(', ')}, not ${value}`)
}

function parseByteCount(option: string, value: string | undefined): number | undefined {
  if (value === undefined || /^[1-9]\d{0,14}$/.test(value))
    return value === undefined ? value : Number(value)
  throw createUsageError(`${option} takes a number of bytes, not ${value}`)
}
