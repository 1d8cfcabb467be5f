import { describe, expect, test } from 'vitest'
import { separateWeights } from '../../../src/engine/onnx/separate-weights.ts'
import { type Message, type Value, writeMessage } from '../../support/protobuf.ts'

const bytes = async (blob: Blob): Promise<Buffer> => Buffer.from(await blob.arrayBuffer())

const large = Uint8Array.from({ length: 100_000 }, (_, index) => index % 251)
const larger = Uint8Array.from({ length: 3_000_000 }, (_, index) => index % 241)
const small = Uint8Array.from({ length: 80 }, (_, index) => index)

const tensor = (name: string, raw: [number, Value][], length: number): Message => [
  [1, length],
  [2, 2],
  [8, name],
  ...raw,
]

const file = (first: [number, Value][], second: [number, Value][]): Message => [
  [1, 8],
  [
    7,
    [
      [
        1,
        [
          [1, 'x'],
          [2, 'y'],
          [4, 'MatMul'],
        ],
      ],
      [2, 'graph'],
      [5, tensor('small', [[9, small]], small.length)],
      [5, tensor('large', first, large.length)],
      [11, [[1, 'x']]],
      [5, tensor('larger', second, larger.length)],
      [12, [[1, 'y']]],
    ],
  ],
  [
    8,
    [
      [1, ''],
      [2, 17],
    ],
  ],
]

describe('weights part from their graph', () => {
  test('and are found where the graph says', async () => {
    const model = new Blob([writeMessage(file([[9, large]], [[9, larger]]))])
    const { graph, externalData } = await separateWeights(model)
    expect(externalData).toEqual([{ path: '.weights', data: model }])
    const text = (await bytes(graph)).toString('latin1')
    const offsets = [...text.matchAll(/offset\W+(\d+)/g)].map(([, digits]) => Number(digits))
    const [one, other] = offsets as [number, number]
    expect((await bytes(model.slice(one, one + large.length))).equals(large)).toBe(true)
    expect((await bytes(model.slice(other, other + larger.length))).equals(larger)).toBe(true)

    const away = (offset: number, length: number): [number, Value][] => [
      [
        13,
        [
          [1, 'location'],
          [2, '.weights'],
        ],
      ],
      [
        13,
        [
          [1, 'offset'],
          [2, `${offset}`],
        ],
      ],
      [
        13,
        [
          [1, 'length'],
          [2, `${length}`],
        ],
      ],
      [14, 1],
    ]
    const expected = file(away(one, large.length), away(other, larger.length))
    expect((await bytes(graph)).equals(writeMessage(expected))).toBe(true)
  })

  test('where they are large', async () => {
    const model = new Blob([writeMessage(file([[9, small]], [[9, small]]))])
    expect(await separateWeights(model)).toEqual({ graph: model, externalData: [] })
  })

  test('not in what is no model', async () => {
    for (const content of ['', 'not a model', new Uint8Array(200_000).fill(255)]) {
      const model = new Blob([content])
      expect((await separateWeights(model)).graph).toBe(model)
    }
    const cut = new Blob([writeMessage(file([[9, large]], [[9, larger]]))]).slice(0, 1_000_000)
    const { graph } = await separateWeights(cut)
    expect(graph.size).toBeLessThanOrEqual(cut.size)
  })
})
