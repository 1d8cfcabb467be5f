import { byId } from './dom.ts'

/** Key of what is typed in this tab, which a reload does not lose. */
const DRAFT = 'playground:draft'

export interface Composer {
  onSend(send: (question: string) => void): void
  onStop(stop: () => void): void
  /** Shows the stop button in place of the send button. */
  setBusy(busy: boolean): void
  /** Writes a question into an empty input and selects it, so that typing replaces it. */
  suggest(question: string): void
  clear(): void
  focus(): void
}

/** Creates the input. Enter sends, Shift+Enter adds a line, Escape stops the answer. */
export function createComposer(): Composer {
  const form = byId('composer', HTMLFormElement)
  const input = byId('input', HTMLTextAreaElement)
  const send = byId('send', HTMLButtonElement)
  const stop = byId('stop', HTMLButtonElement)
  let busy = false

  function fit(): void {
    sessionStorage.setItem(DRAFT, input.value)
    send.disabled = input.value.trim() === ''
    input.style.height = 'auto'
    input.style.height = `${input.scrollHeight}px`
  }

  input.addEventListener('input', fit)
  input.addEventListener('keydown', (event) => {
    // While an input method composes, Enter only ends the composition.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    form.requestSubmit()
  })
  document.addEventListener('keydown', ({ key, defaultPrevented }) => {
    if (key === 'Escape' && busy && !defaultPrevented) stop.click()
  })
  // Text that was typed before the scripts arrived is newer than the kept one.
  input.value ||= sessionStorage.getItem(DRAFT) ?? ''
  fit()

  function focus(): void {
    // On a touch screen, focus would raise the keyboard over the answer.
    if (matchMedia('(pointer: fine)').matches) input.focus()
  }

  return {
    onSend(callback) {
      form.addEventListener('submit', (event) => {
        event.preventDefault()
        const question = input.value.trim()
        if (question !== '' && !busy) callback(question)
      })
    },
    onStop(callback) {
      stop.addEventListener('click', callback)
    },
    setBusy(next) {
      const held = document.activeElement === stop
      busy = next
      stop.hidden = !busy
      send.hidden = busy
      if (held && !busy) input.focus()
    },
    suggest(question) {
      if (input.value !== '') return
      input.value = question
      fit()
      focus()
      input.select()
    },
    clear() {
      input.value = ''
      fit()
    },
    focus,
  }
}
