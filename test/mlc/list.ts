/** WebLLM's own list, as the package has it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

interface Listed {
  model: string
  model_id: string
  model_lib: string
}

const FILE = join(import.meta.dirname, '../../src/catalog/mlc/list.json')

export const readList = (): Listed[] =>
  (JSON.parse(readFileSync(FILE, 'utf8')) as { records: Listed[] }).records
