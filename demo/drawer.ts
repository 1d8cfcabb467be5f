import { byId } from './dom.ts'

interface DrawerOptions {
  /** Id of the part, under which its state is stored. */
  part: 'history' | 'panel'
  /** Ids of the buttons that open and close it. */
  opener: string
  closer: string
  /** `true` if the column is open until the visitor closes it. */
  isOpen: boolean
}

/** A part of the page: a column where there is room, which stays as it was left, and a sheet where there is none. */
export class Drawer {
  readonly element: HTMLElement
  readonly #opener: HTMLButtonElement
  readonly #hasRoom = matchMedia('(min-width: 66rem)')
  readonly #part: 'history' | 'panel'
  readonly #listeners: (() => void)[] = []
  #isColumn: boolean
  #isSheet = false

  constructor({ part, opener, closer, isOpen }: DrawerOptions) {
    this.element = byId(part, HTMLElement)
    this.#opener = byId(opener, HTMLButtonElement)
    this.#part = part
    // `looks.js` has set it before the first paint.
    const kept = document.documentElement.dataset[part]
    this.#isColumn = kept === undefined ? isOpen : kept === 'open'
    this.#opener.addEventListener('click', () => this.#set(!this.isShown))
    byId(closer, HTMLButtonElement).addEventListener('click', () => this.#set(false))
    this.element.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || event.defaultPrevented || !this.#isSheet) return
      // Behind it, Escape would stop the answer.
      event.stopPropagation()
      this.leave()
    })
    // A key can open the other part over this one. A dialog that this part has opened leaves it.
    for (const type of ['pointerdown', 'focusin'])
      document.addEventListener(type, ({ target }) => {
        if (!(target instanceof Element) || this.element.contains(target)) return
        if (!target.closest('dialog')) this.leave()
      })
    this.#hasRoom.addEventListener('change', () => {
      this.#isSheet = false
      this.#show()
    })
    this.#show()
  }

  /** `true` while the part can be seen. */
  get isShown(): boolean {
    return this.#hasRoom.matches ? this.#isColumn : this.#isSheet
  }

  /** Closes the sheet. A column stays. */
  leave(): void {
    if (this.#isSheet) this.#set(false)
  }

  /** Calls a function now if the part is shown, and each time that it is shown. */
  onShow(listener: () => void): void {
    this.#listeners.push(listener)
    if (this.isShown) listener()
  }

  #set(isOpen: boolean): void {
    if (this.#hasRoom.matches) {
      this.#isColumn = isOpen
      const kept = isOpen ? 'open' : 'closed'
      document.documentElement.dataset[this.#part] = kept
      localStorage.setItem(`playground:${this.#part}`, kept)
    } else this.#isSheet = isOpen
    const held = this.element.contains(document.activeElement)
    this.#show()
    if (this.#isSheet)
      this.element.querySelector<HTMLElement>('button:not([tabindex="-1"])')?.focus()
    else if (!isAnyOver() && (held || !this.#hasRoom.matches)) this.#opener.focus()
  }

  #show(): void {
    this.element.classList.toggle('over', this.#isSheet)
    this.#opener.setAttribute('aria-expanded', String(this.isShown))
    for (const part of document.querySelectorAll<HTMLElement>('.bar, .chat'))
      part.inert = isAnyOver()
    if (this.isShown) for (const listener of this.#listeners) listener()
  }
}

const isAnyOver = (): boolean => document.querySelector('.drawer.over') !== null
