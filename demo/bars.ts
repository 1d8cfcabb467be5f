import { element } from './dom.ts'

/** A label and how much of something it has, as a bar. */
export interface Bar {
  item: HTMLLIElement
  /** A part of 1, less than 0 shows as nothing; `undefined`: nothing is known. */
  show(part: number | undefined): void
}

export function createBar(label: string, meaning: string): Bar {
  const item = element('li', '')
  const meter = element('div', '')
  const bar = element('i', '')
  const figure = element('span', '')
  meter.role = 'meter'
  meter.ariaLabel = `${meaning}, in percent`
  meter.append(bar)
  item.append(element('span', '', label), meter, figure)
  return {
    item,
    show(part) {
      const percent = Math.round(100 * Math.max(0, part ?? 0))
      meter.ariaValueNow = String(percent)
      bar.style.width = `${percent}%`
      figure.textContent = part === undefined ? '' : `${percent} %`
    },
  }
}
