/** The work of a decode step in small: products of 8-bit numbers, as the runtime computes them on WASM. */

/** Bytes of the weights, more than most caches hold. */
export const WEIGHT_BYTES = 2 ** 24

/** Bytes of a row of weights. The input has as many. */
export const ROW_BYTES = 2_048

const PAGE_BYTES = 2 ** 16

export interface Kernel {
  /** Memory with the weights, and the input behind them. */
  memory: WebAssembly.Memory
  /** Returns the sum of the products of `count` pairs of signed bytes; `count` is a multiple of 16. */
  dot(weights: number, input: number, count: number): number
}

/** Resolves with the kernel. Rejects if the browser has no SIMD. */
export async function createKernel(): Promise<Kernel> {
  const { instance } = await WebAssembly.instantiate(MODULE)
  return instance.exports as unknown as Kernel
}

const WEIGHTS = 0
const INPUT = 1
const COUNT = 2
const END = 3
const SUM = 4

const get = (local: number): number[] => [0x20, local]
const set = (local: number): number[] => [0x21, local]
const LOAD = [0xfd, 0x00, 0x04, 0x00]
const LOW = [0xfd, 0x87, 0x01]
const HIGH = [0xfd, 0x88, 0x01]
const DOT = [0xfd, 0xba, 0x01]
const ADD_LANES = [0xfd, 0xae, 0x01]
const ADD = 0x6a
const lane = (index: number): number[] => [...get(SUM), 0xfd, 0x1b, index]
const advance = (local: number): number[] => [...get(local), 0x41, 16, ADD, ...set(local)]
/** Adds the products of eight pairs to the sum: `i32x4.dot_i16x8_s` of bytes that become 16 bits. */
const addHalf = (half: number[]): number[] =>
  [get(SUM), get(WEIGHTS), LOAD, half, get(INPUT), LOAD, half, DOT, ADD_LANES, set(SUM)].flat()

const BODY = [
  // Locals: one i32 and one v128.
  [2, 1, 0x7f, 1, 0x7b],
  [...get(WEIGHTS), ...get(COUNT), ADD, ...set(END)],
  [0x03, 0x40],
  addHalf(LOW),
  addHalf(HIGH),
  advance(INPUT),
  advance(WEIGHTS),
  [...get(WEIGHTS), ...get(END), 0x49, 0x0d, 0, 0x0b],
  [...lane(0), ...lane(1), ADD, ...lane(2), ADD, ...lane(3), ADD, 0x0b],
].flat()

const text = (words: string): number[] => [words.length, ...new TextEncoder().encode(words)]

/** Encodes a whole number in LEB128. */
const leb = (value: number): number[] =>
  value < 128 ? [value] : [(value & 127) | 128, ...leb(value >>> 7)]

const section = (id: number, content: number[]): number[] => [
  id,
  ...leb(content.length),
  ...content,
]

const MODULE = new Uint8Array(
  [
    [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    section(1, [1, 0x60, 3, 0x7f, 0x7f, 0x7f, 1, 0x7f]),
    section(3, [1, 0]),
    section(5, [1, 0, ...leb(WEIGHT_BYTES / PAGE_BYTES + 1)]),
    section(7, [2, ...text('dot'), 0, 0, ...text('memory'), 2, 0]),
    section(10, [1, ...leb(BODY.length), ...BODY]),
  ].flat(),
)
