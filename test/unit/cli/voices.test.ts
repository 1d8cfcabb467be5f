/** Voices: what their files say becomes the draft of a predictor that speaks. */
import { describe, expect, test } from 'vitest'
import { LETTER_FILES, LETTER_VOICE, PHONEME_VOICE, PIPER_CONFIG } from '../../support/voices.ts'
import { addFolder, addIn, freshFolder, json } from './graphs.ts'

describe('A voice of VITS', () => {
  const { vocabulary, settings } = LETTER_FILES
  const files = (changes: object = {}) => ({
    'm/config.json': json({ architectures: ['VitsModel'], sampling_rate: 24_000 }),
    'm/vocab.json': json(vocabulary),
    'm/tokenizer_config.json': json({ ...settings, ...changes }),
    'm/model.onnx': LETTER_VOICE,
  })

  test('reads letters and runs on the CPU', async () => {
    const { entry, binding, notes, printed } = await addFolder(files())
    expect(entry.speech).toEqual({ input: 'text', output: 'audio', rate: 24_000 })
    expect(entry.implementations.map(({ device }) => device)).toEqual(['wasm'])
    expect(binding('text')).toEqual({
      tensor: 'input_ids',
      shape: [1, null],
      text: { tokenizer: 'vocab.json', mask: 'attention_mask', most: 4_096 },
    })
    const names = entry.implementations[0]?.resources.map(({ name }) => name)
    expect(names).toEqual(['config.json', 'tokenizer_config.json', 'model.onnx', 'vocab.json'])
    expect(notes).toEqual(['Its speed is fixed in the graph (speaking_rate 1).'])
    expect(printed).toContain("fetch('/v1/audio/speech'")
  })

  test('in the layout of a hub has its letters, too', async () => {
    const { 'm/model.onnx': graph, ...texts } = files()
    const { entry } = await addFolder({ ...texts, 'm/onnx/model.onnx': graph })
    const names = entry.implementations[0]?.resources.map(({ name }) => name)
    expect(names).toContain('vocab.json')
  })

  test.each([
    [{ is_uroman: true }, 'uroman makes of a text (is_uroman), which is not supported'],
    [{ phonemize: true }, 'espeak-ng makes of a text (phonemize), which is not supported'],
  ])('with %j is refused', async (changes, why) => {
    await expect(addFolder(files(changes))).rejects.toThrow(why)
  })

  test('without its letters is refused', async () => {
    const { 'm/vocab.json': _, ...others } = files()
    await expect(addFolder(others)).rejects.toThrow('there is no vocab.json')
  })

  test('is refused for WebGPU alone', async () => {
    const adding = addIn(freshFolder(files()), 'm', { devices: ['webgpu'] })
    await expect(adding).rejects.toThrow('--device webgpu: voices run on WASM only.')
  })
})

describe('A voice of Piper', () => {
  const files = (changes: object = {}) => ({
    'm/voice.onnx.json': json({ ...PIPER_CONFIG, ...changes }),
    'm/voice.onnx': PHONEME_VOICE,
  })
  const dictionary = { 'm/lexicon.txt': 'hello HH AH0 L OW1\n' }

  test('reads phonemes of a dictionary, with its speakers and its speed', async () => {
    const { entry, binding, notes } = await addFolder({ ...files(), ...dictionary })
    expect(entry.speech).toEqual({
      input: 'text',
      output: 'audio',
      rate: 22_050,
      speed: { input: 'scales', index: 1 },
      voice: 'voice',
    })
    expect(entry.signature.inputs).toMatchObject([
      { name: 'text', type: 'string' },
      { name: 'scales', defaultValue: [0.5, 2, 0.25] },
      {
        name: 'voice',
        defaultValue: 0,
        enumeration: [
          { name: 'anna', value: 0 },
          { name: 'ben', value: 1 },
        ],
      },
    ])
    expect(binding('text')?.text).toEqual({
      tokenizer: 'voice.onnx.json',
      lengths: 'input_lengths',
      dictionary: 'lexicon.txt',
      most: 4_096,
    })
    expect(notes).toEqual([])
  })

  test('numbers speakers that have no names', async () => {
    const { entry } = await addFolder(files({ speaker_id_map: {}, num_speakers: 3 }))
    const names = entry.signature.inputs[2]?.enumeration?.map(({ name }) => name)
    expect(names).toEqual(['0', '1', '2'])
  })

  test('says that it lacks a dictionary, unless it reads letters', async () => {
    const { notes } = await addFolder(files())
    expect(notes.join()).toContain('there is no lexicon.txt')
    const letters = await addFolder({ ...files({ phoneme_type: 'text' }), ...dictionary })
    expect(letters.notes).toEqual([])
    expect(letters.binding('text')?.text).not.toHaveProperty('dictionary')
  })

  test('of other phonemes is refused', async () => {
    const adding = addFolder(files({ phoneme_type: 'pinyin' }))
    await expect(adding).rejects.toThrow('the phoneme_type "pinyin", which is not supported')
  })

  test('with another graph is refused', async () => {
    await expect(addFolder({ ...files(), 'm/voice.onnx': LETTER_VOICE })).rejects.toThrow(
      'the graph has no input, input_lengths, scales',
    )
  })

  test('is a graph alone beside another file of that name', async () => {
    const other = { 'm/voice.onnx.json': json({ any: 1 }) }
    const { entry } = await addFolder({ ...files(), ...other })
    expect(entry.speech).toBeUndefined()
  })
})
