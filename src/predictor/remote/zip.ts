/**
 * Reads and writes ZIP archives of one file, as NumPy does.
 * https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
 */
import { readStream } from '../../values/read-stream.ts'

const LOCAL_HEADER_SIGNATURE = 0x04034b50
const DIRECTORY_SIGNATURE = 0x02014b50
const END_SIGNATURE = 0x06054b50

/** Bytes of each header without its variable fields. */
const [LOCAL_HEADER_BYTES, DIRECTORY_ENTRY_BYTES, END_RECORD_BYTES] = [30, 46, 22]

/** Largest comment after the end record, in bytes. */
const MAX_COMMENT_BYTES = 2 ** 16 - 1

/** Compression method of content that is not compressed. */
export const STORED = 0
/** Compression method that {@link inflate} reads. */
export const DEFLATED = 8

/** Date of a file: 1 January 1980, the first that ZIP can represent. */
const ZIP_DATE = 0x21

/** Compressed bytes per decompression step. Each can expand to at most about 1000 bytes. */
const INFLATE_STEP_BYTES = 2 ** 14

/** File in an archive. */
export interface ZipFile {
  name: string
  /** Number of bytes that the archive declares for the content. */
  size: number
  /** Compression method as the archive declares it: {@link STORED}, {@link DEFLATED} or another. */
  method: number
  /** Bytes as they are in the archive. */
  stored: Uint8Array<ArrayBuffer>
}

/** Returns `true` for bytes that begin as an archive does. */
export function isZip(bytes: Uint8Array): boolean {
  return bytes.length > 3 && viewOf(bytes).getUint32(0, true) === LOCAL_HEADER_SIGNATURE
}

/**
 * Returns the file in an archive, or `undefined` if the archive has another number of files. Throws
 * any error if the archive is damaged.
 */
export function readZip(archive: Uint8Array<ArrayBuffer>): ZipFile | undefined {
  const view = viewOf(archive)
  let end = archive.length - END_RECORD_BYTES
  const start = end - MAX_COMMENT_BYTES
  while (view.getUint32(end, true) !== END_SIGNATURE) {
    end -= 1
    if (end < start) throw new Error('The archive has no end record.')
  }
  if (view.getUint16(end + 8, true) !== 1) return undefined
  const entry = view.getUint32(end + 16, true)
  const method = view.getUint16(entry + 10, true)
  const nameStart = entry + DIRECTORY_ENTRY_BYTES
  const name = archive.subarray(nameStart, nameStart + view.getUint16(entry + 28, true))
  const from = LOCAL_HEADER_BYTES + view.getUint16(26, true) + view.getUint16(28, true)
  return {
    name: new TextDecoder().decode(name),
    size: view.getUint32(entry + 24, true),
    method,
    stored: archive.subarray(from, from + view.getUint32(entry + 20, true)),
  }
}

/** Yields the decompressed bytes in steps, because a small input can expand to minutes of work. */
export async function* inflate(compressed: Uint8Array<ArrayBuffer>): AsyncGenerator<Uint8Array> {
  let from = 0
  const source = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      if (from >= compressed.length) return controller.close()
      controller.enqueue(compressed.subarray(from, from + INFLATE_STEP_BYTES))
      from += INFLATE_STEP_BYTES
    },
  })
  yield* readStream(source.pipeThrough(new DecompressionStream('deflate-raw')))
}

/** Returns an archive with one uncompressed file. `checksum` is the CRC-32 of the content. */
export function writeZip(fileName: string, content: Uint8Array, checksum: number): Uint8Array {
  const name = new TextEncoder().encode(fileName)
  const checksumAndSizes = [checksum, content.length, content.length]
  const directory = LOCAL_HEADER_BYTES + name.length + content.length
  const endRecord = directory + DIRECTORY_ENTRY_BYTES + name.length
  const bytes = new Uint8Array(endRecord + END_RECORD_BYTES)
  const view = viewOf(bytes)
  const writeUint32s = (at: number, all: readonly number[]): void =>
    all.forEach((number, place) => view.setUint32(at + 4 * place, number, true))

  // The fields say version 2.0 and no compression.
  writeUint32s(0, [LOCAL_HEADER_SIGNATURE, 20, 0])
  view.setUint16(12, ZIP_DATE, true)
  writeUint32s(14, [...checksumAndSizes, name.length])
  writeUint32s(directory, [
    DIRECTORY_SIGNATURE,
    (20 << 16) | 20,
    0,
    ZIP_DATE << 16,
    ...checksumAndSizes,
    name.length,
  ])
  writeUint32s(endRecord, [END_SIGNATURE, 0, 0x10001, endRecord - directory, directory])
  bytes.set(name, LOCAL_HEADER_BYTES)
  bytes.set(content, LOCAL_HEADER_BYTES + name.length)
  bytes.set(name, directory + DIRECTORY_ENTRY_BYTES)
  return bytes
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength)
}
