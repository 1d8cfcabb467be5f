import { byId } from './dom.ts'

interface DrawerIds {
  /** Id of the part, under which its state is stored. Its class `closed` says how it begins. */
  part: 'history' | 'panel'
  /** Ids of the buttons that open and close it. */
  opener: string
  closer: string
}

/** A part of the page: a column where there is room, which stays as it was left, and a sheet where there is none. */
export class Drawer {
  readonly element: HTMLElement
  readonly #opener: HTMLButtonElement
  readonly #hasRoom = matchMedia('(min-width: 66rem)')
  readonly #key: string
  readonly #listeners: (() => void)[] = []
  #isColumn: boolean
  #isSheet = false

  constructor({ part, opener, closer }: DrawerIds) {
    this.element = byId(part, HTMLElement)
    this.#opener = byId(opener, HTMLButtonElement)
    this.#key = `playground:${part}`
    const { classList } = this.element
    const kept = localStorage.getItem(this.#key)
    this.#isColumn = kept === null ? !classList.contains('closed') : kept === 'open'
    this.#opener.addEventListener('click', () => this.#set(!this.isShown))
    byId(closer, HTMLButtonElement).addEventListener('click', () => this.#set(false))
    this.element.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || event.defaultPrevented || !this.#isSheet) return
      // Behind it, Escape would stop the answer.
      event.stopPropagation()
      this.leave()
    })
    // A key can open the other part over this one.
    for (const type of ['pointerdown', 'focusin'])
      document.addEventListener(type, ({ target }) => {
        if (target instanceof Node && !this.element.contains(target)) this.leave()
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
      localStorage.setItem(this.#key, isOpen ? 'open' : 'closed')
    } else this.#isSheet = isOpen
    const held = this.element.contains(document.activeElement)
    this.#show()
    if (this.#isSheet)
      this.element.querySelector<HTMLElement>('button:not([tabindex="-1"])')?.focus()
    else if (!isAnyOver() && (held || !this.#hasRoom.matches)) this.#opener.focus()
  }

  #show(): void {
    const { classList } = this.element
    classList.toggle('closed', !this.#isColumn)
    classList.toggle('over', this.#isSheet)
    this.#opener.setAttribute('aria-expanded', String(this.isShown))
    for (const part of document.querySelectorAll<HTMLElement>('.bar, .chat'))
      part.inert = isAnyOver()
    if (this.isShown) for (const listener of this.#listeners) listener()
  }
}

const isAnyOver = (): boolean => document.querySelector('.drawer.over') !== null
