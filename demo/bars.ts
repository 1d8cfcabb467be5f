import { element } from './dom.ts'

/** Bar with a label, which shows a fraction. */
export interface Bar {
  item: HTMLLIElement
  /** Shows a fraction of 1. A negative one shows as 0, and `undefined` shows no figure. */
  show(part: number | undefined): void
}

export function createBar(label: string, meaning: string): Bar {
  const item = element('li', '')
  const meter = element('div', '')
  const bar = element('i', '')
  const figure = element('span', '')
  meter.role = 'meter'
  meter.ariaLabel = `${meaning}, in percent`
  meter.ariaValueMin = '0'
  meter.ariaValueMax = '100'
  meter.ariaValueNow = '0'
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
