/** Plays numbers as sound. */
import { button, element } from '../dom.ts'

/** Fewest samples that are taken for sound. */
const MIN_SAMPLES = 2_000
const RATE = 16_000

/** Returns `true` if numbers can be samples: many of them, and all from -1 to 1. */
export function isSound(samples: Float32Array): boolean {
  return samples.length >= MIN_SAMPLES && samples.every((sample) => Math.abs(sample) <= 1)
}

/** Creates a button that plays the samples, and the field of their rate. */
export function createPlayer(samples: Float32Array): HTMLElement {
  const row = element('div', 'row')
  const label = element('label', 'predictor-check', 'Samples per second')
  const rate = element('input', '')
  Object.assign(rate, { type: 'number', min: '8000', max: '96000', value: String(RATE) })
  label.append(rate)
  const play = button('Play as sound', 'plain', () => {
    if (!rate.reportValidity()) return
    const context = new AudioContext()
    const buffer = context.createBuffer(1, samples.length, rate.valueAsNumber || RATE)
    buffer.copyToChannel(new Float32Array(samples), 0)
    const source = new AudioBufferSourceNode(context, { buffer })
    source.connect(context.destination)
    source.addEventListener('ended', () => void context.close())
    source.start()
  })
  row.append(play, label)
  return row
}
