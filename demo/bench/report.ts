/** The result as rows of a table. */
import { bytes, duration, rate } from '../format.ts'
import type { AdapterInfo, BenchResult, DecodeRate } from './result.ts'

/** Returns the JSON file. Numbers have at most three decimal places. */
export function toJson(result: BenchResult): string {
  const rounded = (_name: string, value: unknown): unknown =>
    typeof value === 'number' ? Math.round(1_000 * value) / 1_000 : value
  return `${JSON.stringify(result, rounded, 2)}\n`
}

export type Row = readonly [name: string, value: string]

/** Returns the rows of the table: the measurements first, then what explains them. */
export function toRows(result: BenchResult): Row[] {
  return [...measurementRows(result), ...settingRows(result), ...environmentRows(result)]
}

function measurementRows(result: BenchResult): Row[] {
  const { load, firstToken, decode, concurrent, predict } = result
  const { secondTurnPromptTokens, secondTurnCachedTokens } = firstToken
  const reused = `${secondTurnPromptTokens} tokens, ${secondTurnCachedTokens} of them reused`
  return [
    ['Download and load', load.downloadMs === null ? 'was stored' : duration(load.downloadMs)],
    ['Load from the store', duration(load.storedMs)],
    [
      'First token, new prompt',
      `${duration(firstToken.coldMs)} (${firstToken.promptTokens} tokens)`,
    ],
    ['First token, second turn', `${duration(firstToken.secondTurnMs)} (${reused})`],
    ['Prefill', perSecond(result.prefillTokensPerSecond)],
    ['Decode, short context', describeRate(decode.short)],
    ['Decode, middle context', describeRate(decode.middle)],
    ['Decode, long context', describeRate(decode.long)],
    [
      `${concurrent.streams} streams at once`,
      `${perSecond(concurrent.togetherTokensPerSecond)}, ${concurrent.ratio.toFixed(2)} times one`,
    ],
    ['Request that computes nothing', duration(result.overheadMs)],
    ['Predictor', predict ? `${duration(predict.milliseconds)} (${predict.tag})` : 'none'],
  ]
}

function settingRows(result: BenchResult): Row[] {
  const { settings, implementation, answerTokens, version, date, seconds } = result
  const { tag, device, effort, rounds } = settings
  const { id, device: used, bytes: size } = implementation
  return [
    ['Model', `${tag}: ${id}, ${used}, ${bytes(size)}`],
    [
      'Setting',
      `${effort}, rounds: ${rounds}, tokens of an answer: ${answerTokens}, device: ${device}`,
    ],
    ['inorigin', `${version}, on ${date}, in ${duration(1_000 * seconds)}`],
  ]
}

function environmentRows({ environment }: BenchResult): Row[] {
  const { browser, browserVersion, platform, cores, deviceMemory, wasm, adapter } = environment
  const isolated = environment.crossOriginIsolated ? 'yes' : 'no'
  return [
    ['Browser', `${browser} ${browserVersion} on ${platform}`],
    ['Cores', String(cores)],
    ['Memory', deviceMemory === null ? 'not reported' : `${deviceMemory} GiB`],
    ['Cross-origin isolated', isolated],
    [
      'WASM',
      Object.entries(wasm)
        .map(([name, value]) => `${name}: ${value}`)
        .join(', '),
    ],
    ['WebGPU adapter', adapter ? describeAdapter(adapter) : 'none'],
    ['Self-test of the GPU', environment.selfTest],
  ]
}

function describeAdapter(adapter: AdapterInfo): string {
  const { vendor, architecture, device, description, software, features } = adapter
  const name = [vendor, architecture, device, description].filter(Boolean).join(' ') || 'no name'
  return [software ? `${name} (software)` : name, ...features].join(', ')
}

function describeRate(decode: DecodeRate): string {
  const { contextTokens, acceptedDraftTokens: accepted, rejectedDraftTokens: rejected } = decode
  const figure = `${rateOrNone(decode.tokensPerSecond)} (after ${contextTokens} tokens)`
  if (accepted + rejected === 0) return `${figure}, no drafts`
  const without = rateOrNone(decode.tokensPerSecondWithoutDrafts)
  return `${figure}, ${accepted} of ${accepted + rejected} draft tokens accepted, without: ${without}`
}

const rateOrNone = (tokensPerSecond: number | null): string =>
  tokensPerSecond === null ? 'not measured' : perSecond(tokensPerSecond)

const perSecond = (tokens: number): string => `${rate(tokens)} tokens/s`
