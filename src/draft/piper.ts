/** Drafts voices of Piper: a graph `voice.onnx` with its configuration `voice.onnx.json`. */
import { isObject } from '../values/objects.ts'
import { type Folder, readJson } from './folder.ts'
import type { OnnxModel } from './model.ts'
import {
  type Item,
  itemsOf,
  type Plan,
  type PlanOptions,
  readChecked,
  titleOf,
  toPlanned,
} from './plan.ts'
import { refuse } from './refuse.ts'
import { type Config, positive } from './tasks/files.ts'
import type { TaskDraft } from './tasks/task-draft.ts'
import { assertRunsOnCpu, createVoice } from './tasks/voice.ts'

/** File beside the graph with the pronunciations of words. */
const DICTIONARY = 'lexicon.txt'

/** Numbers of Piper that a configuration may leave out. */
const DEFAULTS = { rate: 22_050, noise: 0.667, length: 1, width: 0.8 }

/** Place of the number among the scales that makes speech longer. */
const LENGTH_SCALE = 1

/**
 * Resolves with the plan of a voice; `null` if the file beside the graph is of something else, or if the
 * inputs stay tensors. Rejects with `invalid_request` if it is a voice that cannot speak.
 */
export async function planPiper(
  folder: Folder,
  path: string,
  options: PlanOptions,
): Promise<Plan | null> {
  const config = await readJson(folder, `${path}.json`)
  if (!isObject(config['phoneme_id_map']) || options.tensors.size > 0) return null
  const model = await readChecked(folder, path)
  assertRunsOnCpu(options.devices)
  const drafted = draftPiper(folder, path, model, config)
  const { signature, bindings, notes, speech } = options.wishes?.apply(drafted, model) ?? drafted
  const items = [...itemsOf(folder, path, model), ...listTexts(folder, path)]
  return {
    entry: { type: 'predictor', name: titleOf(path), ...(speech && { speech }), signature },
    implementations: [toPlanned('wasm', 'wasm', model.usesHalves, items, bindings)],
    notes,
  }
}

function draftPiper(folder: Folder, path: string, model: OnnxModel, config: Config): TaskDraft {
  const name = folder.nameOf(`${path}.json`)
  const inputs = model.inputs.map((input) => input.name)
  const lacking = ['input', 'input_lengths', 'scales'].filter((one) => !inputs.includes(one))
  const [output] = model.outputs
  if (lacking.length > 0 || !output)
    throw refuse(
      `${name} belongs to a voice of Piper, but the graph has no ${lacking.join(', ') || 'output'}.`,
      'Download the voice again.',
    )
  const { phoneme_type: kind = 'espeak', audio, inference } = config
  if (kind !== 'espeak' && kind !== 'text')
    throw refuse(
      `${name} has the phoneme_type ${JSON.stringify(kind)}, which is not supported.`,
      'Use a voice with "espeak" or "text".',
    )
  const files = listTexts(folder, path)
  const dictionary = files.find(({ path: own }) => own.endsWith(DICTIONARY))
  const voice = createVoice({
    tokens: 'input',
    samples: output.name,
    text: {
      tokenizer: files[0]?.name ?? '',
      lengths: 'input_lengths',
      ...(dictionary && kind === 'espeak' && { dictionary: dictionary.name }),
    },
    rate: positive(isObject(audio) ? audio['sample_rate'] : null) ?? DEFAULTS.rate,
  })
  const draft: TaskDraft = { ...voice, notes: [] }
  draft.signature.inputs.push({
    name: 'scales',
    type: 'float32',
    description: 'Noise of the voice, length of its sounds, and noise of their lengths.',
    optional: true,
    defaultValue: readScales(inference),
  })
  draft.bindings['scales'] = { tensor: 'scales', shape: [3] }
  draft.speech = { ...voice.speech, speed: { input: 'scales', index: LENGTH_SCALE } }
  if (inputs.includes('sid')) addVoices(draft, config)
  if (kind === 'espeak' && !dictionary)
    draft.notes.push(
      `The voice reads phonemes, and there is no ${DICTIONARY} with those of words. Until you put one ` +
        'beside the graph and add it again, texts must have phonemes, such as [[həlˈoʊ]].',
    )
  return draft
}

function readScales(inference: unknown): number[] {
  const {
    noise_scale: noise,
    length_scale: length,
    noise_w: width,
  } = isObject(inference) ? inference : {}
  const read = (value: unknown, other: number): number =>
    typeof value === 'number' ? value : other
  return [read(noise, DEFAULTS.noise), read(length, DEFAULTS.length), read(width, DEFAULTS.width)]
}

/** Adds the input of the speakers, of which the first one is the default. */
function addVoices(draft: TaskDraft, { speaker_id_map: map, num_speakers: count }: Config): void {
  const named = Object.entries(isObject(map) ? map : {}).flatMap(([name, value]) =>
    typeof value === 'number' ? [{ name, value }] : [],
  )
  const numbered = Array.from({ length: positive(count) ?? 1 }, (_, value) => ({
    name: String(value),
    value,
  }))
  draft.signature.inputs.push({
    name: 'voice',
    type: 'int64',
    description: 'Speaker of the text.',
    optional: true,
    defaultValue: 0,
    enumeration: named.length > 0 ? named : numbered,
  })
  draft.bindings['voice'] = { tensor: 'sid', shape: [1] }
  if (draft.speech) draft.speech = { ...draft.speech, voice: 'voice' }
}

/** Returns the configuration of a voice, and its dictionary if there is one. */
const listTexts = (folder: Folder, path: string): Item[] =>
  [`${path}.json`, path.replace(/[^/]*$/, DICTIONARY)].flatMap((file): Item[] => {
    const bytes = folder.sizeOf(file)
    const name = file.slice(file.lastIndexOf('/') + 1)
    return bytes === undefined ? [] : [{ type: 'config', name, path: file, bytes }]
  })
