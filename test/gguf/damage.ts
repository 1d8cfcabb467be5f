/** Damages the heads of real GGUF files, and reads them as `inorigin add` and a page do. */
import { openAsBlob } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { readGguf, toByteSource } from '../../src/engine/gguf/header.ts'
import { tryGguf } from '../support/gguf-mutations.ts'
import { mutate } from '../support/mutate.ts'
import { createChance } from '../support/random.ts'

/** What became of the damaged files. */
export interface DamageReport {
  /** Files that were refused, that are the same model, and that are another one. */
  refused: number
  same: number
  other: number
  /** Most milliseconds of CPU time of one file: those of a clock count what else the machine does. */
  slowest: number
  /** Most bytes of memory beyond those after the file as it is. */
  memory: number
}

/**
 * Resolves with what became of `count` damaged files. Rejects, with the seed, for an error that is not
 * one of ours.
 */
export async function damageFile(path: string, count: number): Promise<DamageReport> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const file = await openAsBlob(path)
  const { dataOffset } = await readGguf(toByteSource(file))
  const head = new Uint8Array(await file.slice(0, dataOffset).arrayBuffer())
  const whole = await tryGguf(file, { weights: false })
  collect()
  const before = process.memoryUsage.rss()
  const report = { refused: 0, same: 0, other: 0, slowest: 0, memory: 0 }
  for (let seed = 0; seed < count; seed += 1) {
    const damaged = new Blob([mutate(head, createChance(seed)), file.slice(dataOffset)])
    const begin = process.cpuUsage()
    const outcome = await tryGguf(damaged, { weights: false }).catch((cause: unknown) => {
      throw new Error(`The seed ${seed} fails: ${String(cause)}`, { cause })
    })
    const { user, system } = process.cpuUsage(begin)
    report.slowest = Math.max(report.slowest, (user + system) / 1_000)
    report.memory = Math.max(report.memory, process.memoryUsage.rss() - before)
    if ('error' in outcome) report.refused += 1
    else if (!('error' in whole) && outcome.checksum === whole.checksum) report.same += 1
    else report.other += 1
    collect()
  }
  return report
}
