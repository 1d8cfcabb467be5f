/** The element with this id. Throws when the page has none, or one of another kind. */
export function byId<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id)
  if (found instanceof kind) return found
  throw new Error(`The page has no ${kind.name} with the id ${id}.`)
}

/** A new element with a class and, if given, text. Text is never parsed as HTML. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  className: string,
  text = '',
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name)
  made.className = className
  made.textContent = text
  return made
}

/** A button that does one thing. */
export function button(text: string, className: string, onClick: () => void): HTMLButtonElement {
  const made = element('button', className, text)
  made.type = 'button'
  made.addEventListener('click', onClick)
  return made
}

/** Lets a button put the text that `read` gives on the clipboard, and say so for a moment. */
export function copies(trigger: HTMLButtonElement, read: () => string): void {
  const label = trigger.textContent
  let timer: ReturnType<typeof setTimeout> | undefined
  const say = (text: string): void => {
    trigger.textContent = text
    clearTimeout(timer)
    timer = setTimeout(() => (trigger.textContent = label), 1_500)
  }
  trigger.addEventListener('click', () => {
    navigator.clipboard.writeText(read()).then(
      () => say('Copied'),
      () => say('Not allowed'),
    )
  })
}
