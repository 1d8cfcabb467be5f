/** Files of sound, made of 16-bit samples. */

/** Returns a WAV file of one channel. */
export function wavFile(samples: Int16Array, rate: number): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(44 + samples.byteLength))
  const marks: [at: number, mark: string][] = [
    [0, 'RIFF'],
    [8, 'WAVE'],
    [12, 'fmt '],
    [36, 'data'],
  ]
  for (const [at, mark] of marks)
    for (const [index, letter] of [...mark].entries())
      view.setUint8(at + index, letter.charCodeAt(0))
  view.setUint32(4, view.byteLength - 8, true)
  view.setUint32(16, 16, true)
  view.setUint16(20, 1, true)
  view.setUint16(22, 1, true)
  view.setUint32(24, rate, true)
  view.setUint32(28, rate * 2, true)
  view.setUint16(32, 2, true)
  view.setUint16(34, 16, true)
  view.setUint32(40, samples.byteLength, true)
  samples.forEach((sample, at) => view.setInt16(44 + 2 * at, sample, true))
  return new Uint8Array(view.buffer)
}

/** Samples of a frame of FLAC. */
const BLOCK = 4096

/** Returns a FLAC file of one channel, whose samples are not compressed: RFC 9639. */
export function flacFile(samples: Int16Array, rate: number): Uint8Array<ArrayBuffer> {
  const writer = new BitWriter()
  for (const letter of 'fLaC') writer.write(letter.charCodeAt(0), 8)
  // The only block of metadata: sizes of the frames, rate, one channel, 16 bits, and no digest.
  writer.write(0x80, 8)
  writer.write(34, 24)
  writer.write(BLOCK, 16)
  writer.write(BLOCK, 16)
  writer.write(0, 24)
  writer.write(0, 24)
  writer.write(rate, 20)
  writer.write(0, 3)
  writer.write(15, 5)
  writer.write(0, 4)
  writer.write(samples.length, 32)
  for (let at = 0; at < 16; at++) writer.write(0, 8)
  for (let from = 0, frame = 0; from < samples.length; from += BLOCK, frame++) {
    const block = samples.subarray(from, from + BLOCK)
    const start = writer.bytes.length
    // The size of the block follows in 16 bits. The rate and the bits are those of the metadata.
    writer.write(0xfff8, 16)
    writer.write(0x70, 8)
    writer.write(0x08, 8)
    writer.write(frame, 8)
    writer.write(block.length - 1, 16)
    writer.write(checksum(writer.bytes.slice(start), 0x07, 8), 8)
    writer.write(0x02, 8)
    for (const sample of block) writer.write(sample & 0xffff, 16)
    writer.write(checksum(writer.bytes.slice(start), 0x8005, 16), 16)
  }
  return Uint8Array.from(writer.bytes)
}

/** Appends numbers of any number of bits, which end whole bytes together. */
class BitWriter {
  readonly bytes: number[] = []
  #open = 0
  #count = 0

  write(value: number, bits: number): void {
    for (let bit = bits - 1; bit >= 0; bit--) {
      this.#open = (this.#open << 1) | (Math.floor(value / 2 ** bit) & 1)
      this.#count += 1
      if (this.#count < 8) continue
      this.bytes.push(this.#open)
      this.#open = this.#count = 0
    }
  }
}

/** Returns the remainder of bytes by a polynomial of so many bits. */
function checksum(bytes: readonly number[], polynomial: number, bits: number): number {
  let rest = 0
  for (const byte of bytes) {
    rest ^= byte << (bits - 8)
    for (let bit = 0; bit < 8; bit++)
      rest = ((rest << 1) ^ ((rest >> (bits - 1)) & 1 ? polynomial : 0)) & (2 ** bits - 1)
  }
  return rest
}
