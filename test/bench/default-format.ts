/** The format that the catalog chooses for WASM, where a hub has all of them. */
import { findVariants } from '../../src/catalog/hub/variants.ts'
import { type OnnxFormat, onnxPath } from './models/shapes.ts'

export function defaultFormat(available: readonly OnnxFormat[]): OnnxFormat {
  const paths = available.flatMap((format) => [onnxPath(format), `${onnxPath(format)}_data`])
  const files = paths.map((path) => ({ path, bytes: 1, sha256: null, blobId: '' }))
  const chosen = findVariants(files, null).find(({ device }) => device === 'wasm')
  const format = available.find((each) => chosen?.files[0]?.path === onnxPath(each))
  if (format === undefined) throw new Error('The catalog chooses none of the formats.')
  return format
}
