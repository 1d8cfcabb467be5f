/** A host that plans as the real one does, with the texts of the embedded model: only what it writes is a script. */
import { readFile } from 'node:fs/promises'
import type { Engine } from '../../../src/engine/engine.ts'
import { openOnnx } from '../../../src/engine/onnx/index.ts'
import { runGeneration } from '../../../src/generation/generate.ts'
import { planGeneration } from '../../../src/generation/plan.ts'
import { placeXgrammar } from '../../support/xgrammar.ts'
import { scripted } from '../generation/scripted.ts'
import { scriptedHost } from './scripted-host.ts'
import type { ScriptedHost } from './scripted-host.ts'

const NAMES = ['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json']

/** The text half of the embedded model. */
export async function openGuide(): Promise<Engine> {
  placeXgrammar()
  const folder = new URL('../../../demo/models/guide/', import.meta.url)
  const texts = new Map<string, Blob>()
  for (const name of NAMES) texts.set(name, new Blob([await readFile(new URL(name, folder))]))
  return openOnnx({ device: 'wasm', runtime: '', texts, maxInputTokens: 4096 })
}

/** Plans with that engine; what is written is a script. */
export function planningHost(engine: Engine): ScriptedHost {
  const writer = scripted(['Hello', ' there'])
  const host = scriptedHost({
    overrides: {
      async generate(request, { signal }) {
        host.requests.push(request)
        const planned = await planGeneration(engine, structuredClone(request))
        const limits = { maxOutputTokens: 100, plan: planned }
        return { ignored: [], events: runGeneration(writer, request, limits, signal) }
      },
      async countTokens(request) {
        host.requests.push(request)
        return (await planGeneration(engine, structuredClone(request))).prompt.tokens.length
      },
    },
  })
  return host
}
