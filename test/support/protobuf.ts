/** Protobuf messages as tests write them, and the smallest of ONNX files. */

/** A `Float32Array` is one number of 32 bits. */
export type Value = number | string | Uint8Array | Float32Array | Message
export type Message = [field: number, value: Value][]

/** A message of whole numbers, floats, texts, bytes and messages. */
export function writeMessage(message: Message): Uint8Array<ArrayBuffer> {
  const parts = message.flatMap(([field, value]): Uint8Array[] => {
    if (typeof value === 'number') return [varint(field * 8), varint(value)]
    if (value instanceof Float32Array) {
      return [varint(field * 8 + 5), new Uint8Array(value.buffer, value.byteOffset, 4)]
    }
    const bytes = bytesOf(value)
    return [varint(field * 8 + 2), varint(bytes.length), bytes]
  })
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

function bytesOf(value: Exclude<Value, number | Float32Array>): Uint8Array {
  if (typeof value === 'string') return new TextEncoder().encode(value)
  return value instanceof Uint8Array ? value : writeMessage(value)
}

function varint(value: number): Uint8Array {
  const bytes: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Uint8Array.from([...bytes, rest])
    bytes.push((rest % 128) + 128)
  }
}

/** Types of elements, by their numbers in onnx.proto. */
const TYPES = { float32: 1, int64: 7 }

/** A model whose one output `y` is one operator of its inputs, vectors all of them. */
export function oneOperator(
  operator: string,
  inputs: Readonly<Record<string, keyof typeof TYPES>>,
): Blob {
  const vector = (name: string, type: keyof typeof TYPES): Message => [
    [1, name],
    [
      2,
      [
        [
          1,
          [
            [1, TYPES[type]],
            [2, [[1, [[2, `${name}_length`]]]]],
          ],
        ],
      ],
    ],
  ]
  const names = Object.keys(inputs)
  return new Blob([
    writeMessage([
      [1, 8],
      [
        7,
        [
          [
            1,
            [
              ...names.map((name): [number, Value] => [1, name]),
              [2, 'y'],
              [3, 'one'],
              [4, operator],
            ],
          ],
          [2, 'one'],
          ...Object.entries(inputs).map(([name, type]): [number, Value] => [
            11,
            vector(name, type),
          ]),
          [12, vector('y', 'float32')],
        ],
      ],
      [
        8,
        [
          [1, ''],
          [2, 17],
        ],
      ],
    ]),
  ])
}
