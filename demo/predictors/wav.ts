/** Writes sound as a WAV file, the one form that `/v1/predictions/remote` takes. */

const HEADER_BYTES = 44
/** Rate to which the browser decodes. The predictor resamples it to its own. */
const RATE = 44_100

/**
 * Resolves with the sound of a file as mono WAV with 16 bits per sample. A file that is WAV stays as
 * it is.
 *
 * @throws Error if the browser cannot decode the file.
 */
export async function toWav(file: Blob, name: string): Promise<File> {
  const bytes = await file.arrayBuffer()
  const isWav = new TextDecoder('latin1').decode(bytes.slice(0, 4)) === 'RIFF'
  const content = isWav ? bytes : encode(await decode(bytes, name))
  return new File([content], name.replace(/(\.\w+)?$/, '.wav'), { type: 'audio/wav' })
}

async function decode(bytes: ArrayBuffer, name: string): Promise<AudioBuffer> {
  try {
    return await new OfflineAudioContext(1, 1, RATE).decodeAudioData(bytes)
  } catch (cause) {
    throw new Error(`This browser cannot read ${name} as sound.`, { cause })
  }
}

function encode(sound: AudioBuffer): ArrayBuffer {
  const { length, numberOfChannels, sampleRate } = sound
  const channels = Array.from({ length: numberOfChannels }, (_unused, at) =>
    sound.getChannelData(at),
  )
  const size = length * 2
  const view = new DataView(new ArrayBuffer(HEADER_BYTES + size))
  const text = (at: number, letters: string): void => {
    for (const [index, letter] of [...letters].entries()) {
      view.setUint8(at + index, letter.charCodeAt(0))
    }
  }
  text(0, 'RIFF')
  view.setUint32(4, HEADER_BYTES - 8 + size, true)
  text(8, 'WAVEfmt ')
  view.setUint32(16, 16, true)
  view.setUint16(20, 1, true)
  view.setUint16(22, 1, true)
  view.setUint32(24, sampleRate, true)
  view.setUint32(28, sampleRate * 2, true)
  view.setUint16(32, 2, true)
  view.setUint16(34, 16, true)
  text(36, 'data')
  view.setUint32(40, size, true)
  for (let at = 0; at < length; at += 1) {
    const sum = channels.reduce((total, channel) => total + (channel[at] ?? 0), 0)
    const sample = Math.max(-1, Math.min(1, sum / numberOfChannels))
    view.setInt16(HEADER_BYTES + at * 2, Math.round(sample * 32_767), true)
  }
  return view.buffer
}
