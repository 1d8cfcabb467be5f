/** Files as values: bytes for a binary input, and sound from a file or the microphone. */
import type { InputParameter } from '../../src/index.ts'
import { button, element } from '../dom.ts'
import { receiveFiles } from '../files.ts'
import { bytes } from '../format.ts'
import { wordsOf } from '../notice.ts'
import { createLabelled, type Field } from './field.ts'
import { createNumberField } from './numbers.ts'
import { toWav } from './wav.ts'

/** Milliseconds between two parts of a recording, after each of which its size is shown. */
const PART_MS = 500

/** Creates a field for the bytes of a file. */
export function createBinaryField(parameter: InputParameter): Field {
  const frame = createLabelled(parameter)
  const file = element('input', '')
  file.type = 'file'
  frame.add(file)
  const found = `document.querySelector('#${file.id}').files[0]`
  return {
    element: frame.element,
    read() {
      const chosen = file.files?.[0]
      return chosen && { value: chosen, code: found, remote: toRemote(found) }
    },
    onChange: (changed) => file.addEventListener('change', changed),
  }
}

/** `toDataURL` is defined in the code that uses it. */
const toRemote = (found: string): string => `{ data: await toDataURL(${found}), dtype: 'binary' }`

/**
 * Creates a field for floats, which are numbers or, for a predictor that listens, sound. A
 * signature does not tell which, so the field offers both.
 */
export function createFloatField(parameter: InputParameter): Field {
  const numbers = createNumberField(parameter)
  if (parameter.range || parameter.defaultValue !== undefined) return numbers
  const box = element('details', 'predictor-sound')
  const label = element('label', '', 'Sound file')
  const file = element('input', '')
  const said = element('p', 'quiet')
  said.role = 'status'
  Object.assign(file, { type: 'file', accept: 'audio/*' })
  label.append(file)
  let sound: File | undefined
  let changed: () => void = () => {}

  function set(next: File | undefined, text: string): void {
    // The code of the request reads the file from this input, too.
    const chosen = new DataTransfer()
    if (next) chosen.items.add(next)
    file.files = chosen.files
    sound = next
    said.textContent = text
    changed()
  }

  async function take(given: Blob | undefined, name: string): Promise<void> {
    if (!given) return
    try {
      const wav = await toWav(given, name)
      set(wav, `${wav.name}, ${bytes(wav.size)}, is used.`)
    } catch (error) {
      set(undefined, wordsOf(error))
    }
  }

  const recorder = createRecorder((recorded) => void take(recorded, 'recording'), said)
  const forget = button('Use the numbers', 'plain', () => set(undefined, ''))
  const row = element('div', 'row')
  row.append(recorder.trigger, forget)
  file.addEventListener('change', () => void take(file.files?.[0], file.files?.[0]?.name ?? ''))
  receiveFiles(numbers.element, ([given]) => {
    box.open = true
    void take(given, given?.name ?? '')
  })
  const hint = element('p', 'quiet', 'If it listens, choose a sound, or drop or paste one here.')
  box.append(element('summary', '', `Sound for ${parameter.name}`), hint, label, row, said)
  numbers.element.append(box)
  file.id = `predictor-sound-${parameter.name.replaceAll(/[^\w-]/g, '_')}`
  const found = `document.querySelector('#${file.id}').files[0]`
  return {
    element: numbers.element,
    read: () => (sound ? { value: sound, code: found, remote: toRemote(found) } : numbers.read()),
    onChange(callback) {
      changed = callback
      numbers.onChange(callback)
    },
    close: recorder.stop,
  }
}

/** Creates a button that records the microphone until it is pressed again. */
function createRecorder(
  onSound: (sound: Blob) => void,
  said: HTMLElement,
): { trigger: HTMLButtonElement; stop(): void } {
  let recorder: MediaRecorder | undefined

  function stop(): void {
    if (recorder?.state === 'recording') recorder.stop()
  }

  async function record(): Promise<void> {
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true })
      const parts: Blob[] = []
      recorder = new MediaRecorder(stream)
      recorder.addEventListener('dataavailable', ({ data }) => {
        parts.push(data)
        said.textContent = `Recording, ${bytes(parts.reduce((sum, { size }) => sum + size, 0))}`
      })
      recorder.addEventListener('stop', () => {
        for (const track of stream.getTracks()) track.stop()
        trigger.textContent = 'Record the microphone'
        onSound(new Blob(parts))
      })
      recorder.start(PART_MS)
      trigger.textContent = 'End the recording'
    } catch (error) {
      said.textContent = `The microphone cannot be used. ${wordsOf(error)}`
    }
  }

  const trigger = button('Record the microphone', 'plain', () => {
    if (recorder?.state === 'recording') stop()
    else void record()
  })
  return { trigger, stop }
}
