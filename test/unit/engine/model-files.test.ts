import { describe, expect, test } from 'vitest'
import { getModelFiles } from '../../../src/engine/onnx/model-files.ts'

function find(...names: string[]): unknown {
  const files = new Map(names.map((name) => [name, new Blob([name])]))
  const named = (blob: Blob): string => names.find((name) => files.get(name) === blob) ?? ''
  const { decoder, embed } = getModelFiles(files)
  return [decoder, embed].map(
    (graph) => graph && [named(graph.model), ...graph.externalData.map(({ path }) => path)],
  )
}

describe('the decoder among the files', () => {
  test.each<[string[], unknown]>([
    [['onnx/model.onnx'], [['onnx/model.onnx'], undefined]],
    [
      ['model_q4.onnx', 'model_q4.onnx_data'],
      [['model_q4.onnx', 'model_q4.onnx_data'], undefined],
    ],
    [
      ['onnx/model_q4f16.onnx', 'onnx/model_q4f16.onnx_data', 'onnx/model_q4f16.onnx_data_1'],
      [['onnx/model_q4f16.onnx', 'model_q4f16.onnx_data', 'model_q4f16.onnx_data_1'], undefined],
    ],
    [
      ['anything.onnx', 'weights.bin'],
      [['anything.onnx', 'weights.bin'], undefined],
    ],
    [
      ['onnx/model.onnx', 'onnx/model_q4.onnx'],
      [['onnx/model.onnx'], undefined],
    ],
    [
      [
        'onnx/embed_tokens_q4.onnx',
        'onnx/embed_tokens_q4.onnx_data',
        'onnx/decoder_model_merged_q4.onnx',
        'onnx/decoder_model_merged_q4.onnx_data',
        'onnx/vision_encoder_q4.onnx',
        'onnx/vision_encoder_q4.onnx_data',
      ],
      [
        ['onnx/decoder_model_merged_q4.onnx', 'decoder_model_merged_q4.onnx_data'],
        ['onnx/embed_tokens_q4.onnx', 'embed_tokens_q4.onnx_data'],
      ],
    ],
    [
      [
        'onnx/embed_tokens.onnx',
        'onnx/embed_tokens_fp16.onnx',
        'onnx/decoder_model_merged_fp16.onnx',
      ],
      [['onnx/decoder_model_merged_fp16.onnx'], ['onnx/embed_tokens_fp16.onnx']],
    ],
    [
      ['onnx/embed_tokens_quantized.onnx', 'onnx/decoder_model_merged_q4.onnx', 'onnx/audio.onnx'],
      [['onnx/decoder_model_merged_q4.onnx'], ['onnx/embed_tokens_quantized.onnx']],
    ],
    [
      ['onnx/embed_tokens_q8.onnx', 'onnx/decoder_model_merged_q8.onnx'],
      [['onnx/decoder_model_merged_q8.onnx'], ['onnx/embed_tokens_q8.onnx']],
    ],
  ])('%j', (names, expected) => {
    expect(find(...names)).toEqual(expected)
  })

  test('is missed by name', () => {
    const missing = expect.objectContaining({
      code: 'model_unusable',
      message: expect.stringContaining('onnx/model.onnx'),
    })
    expect(() => find()).toThrow(missing)
    expect(() => find('vision_encoder.onnx', 'embed_tokens.onnx')).toThrow(missing)
  })

  test('is not guessed among several', () => {
    expect(() => find('model_q4.onnx', 'model_fp16.onnx')).toThrow(
      /more than one decoder, model_q4/,
    )
  })
})
