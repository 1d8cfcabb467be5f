/** Reads the metadata that the author of a model has written into its ONNX file. */
import { createWindow, fieldsOf, fieldsOfFile, type Sliceable } from './protobuf.ts'

/** Numbers of protobuf fields in onnx.proto. */
const MODEL_METADATA = 14
const ENTRY = { key: 1, value: 2 }

/** Maximum size in bytes of an entry that is read. Lists of characters have up to 100 kB. */
const MAX_ENTRY_BYTES = 2 ** 22

/** Resolves with the value of a key, or `null` if the file has none that is short enough. */
export async function readMetadata(model: Sliceable, key: string): Promise<string | null> {
  const file = createWindow(model)
  for await (const { number, from, to } of fieldsOfFile(file, 0, model.size)) {
    if (number !== MODEL_METADATA || to - from > MAX_ENTRY_BYTES) continue
    const entry = await file.read(from, to)
    const texts = new Map(
      Array.from(fieldsOf(entry), (field) => [
        field.number,
        new TextDecoder().decode(entry.subarray(field.from, field.to)),
      ]),
    )
    if (texts.get(ENTRY.key) === key) return texts.get(ENTRY.value) ?? null
  }
  return null
}
