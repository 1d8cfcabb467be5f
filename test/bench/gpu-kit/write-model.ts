/**
 * Writes a model of a plan, unless it is there: `node write-model.mjs FOLDER SIDE MODEL FORMAT`. A model
 * that MLC compiled is written from its library, `FOLDER/mlc/MODEL/library.wasm`.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { writeRandomWeights } from '../../mlc/random-weights.ts'
import { writeGguf } from '../models/gguf.ts'
import type { GgufFormat, OnnxFormat, ShapeName } from '../models/shapes.ts'
import { createTokenizer } from '../models/tokenizer.ts'
import { writeModel } from '../models/write-model.ts'
import type { SideName } from '../side.ts'

const [, , folder = '', side, model, format] = process.argv as [
  string,
  string,
  string,
  SideName,
  ShapeName,
  string,
]

if (side === 'wllama') writeGguf(model, format as GgufFormat, join(folder, 'models', model))
else if (side === 'webllm') writeCompiled(join(folder, 'mlc', model))
else writeModel(model, format as OnnxFormat, join(folder, 'models', model))

function writeCompiled(place: string): void {
  const weights = join(place, 'resolve/main')
  // It is written last.
  if (existsSync(join(weights, 'tensor-cache.json'))) return
  writeRandomWeights(weights, join(place, 'library.wasm'), (vocabulary) => ({
    tokenizer: createTokenizer(vocabulary),
    chat: {
      tokenizer_info: { token_postproc_method: 'raw' },
      eos_token_id: vocabulary - 1,
      conv_template: PLAIN,
    },
  }))
}

/** A template that adds little, since prompts are completed as they are. */
const PLAIN = {
  system_template: '{system_message}',
  system_message: '',
  roles: { user: 'u', assistant: 'a', tool: 't' },
  role_templates: {
    user: '{user_message}',
    assistant: '{assistant_message}',
    tool: '{tool_message}',
  },
  seps: ['\n'],
  role_content_sep: '\n',
  role_empty_sep: '\n',
  stop_str: [],
  stop_token_ids: [],
}
