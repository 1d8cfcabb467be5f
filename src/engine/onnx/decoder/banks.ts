/**
 * Where the lists of conversations are: each in a row of a bank, which is a tensor for each list.
 * Conversations that are computed together are brought together in one bank, and stay there for as
 * long as the same ones go on; nothing is copied then.
 */
import type { Tensor } from 'onnxruntime-web'
import { bytesOf } from '../tensor.ts'
import type { Blocks } from './blocks.ts'
import type { CacheSlot } from './graph.ts'

/** A conversation's place. */
export interface Seat {
  bank: Bank | null
  row: number
  /** Tokens of it; a bank may have room for more. */
  length: number
}

/** Tensors with a row for each of some conversations. */
export interface Bank {
  readonly tensors: Tensor[]
  readonly rows: number
  /** Tokens for which there is room in a row. */
  readonly capacity: number
  readonly seats: Set<Seat>
}

export type Layout =
  /** A run writes into the bank that it reads; room is made beforehand. */
  | 'in place'
  /** A run gives another bank; it takes the one that it reads for as long as it is. */
  | 'exact'

export interface Banks {
  /** Brings these into one bank that they fill, with room for `more` tokens where it is needed. */
  gather(seats: readonly Seat[], more: number): Bank
  /** What a run made of the bank these are in. */
  replace(seats: readonly Seat[], tensors: Tensor[]): void
  /** Another conversation of the first tokens. */
  fork(seat: Seat, length: number): Seat
  leave(seat: Seat): void
  /** Bytes of a row. */
  bytes(seat: Seat): number
}

/** Room of the first bank written in place; doubled as a conversation grows. */
const ROOM = 256

export function createBanks(
  slots: readonly CacheSlot[],
  blocks: Blocks,
  { layout, contextWindow }: { layout: Layout; contextWindow: number },
): Banks {
  const roomFor = (tokens: number): number => {
    if (layout !== 'in place') return tokens
    let room = ROOM
    while (room < tokens) room *= 2
    return Math.max(tokens, Math.min(room, contextWindow))
  }

  const fits = ({ capacity }: Bank, longest: number, more: number): boolean =>
    layout === 'in place' ? capacity >= longest + more : capacity === longest

  const gather: Banks['gather'] = (seats, more) => {
    const longest = Math.max(...seats.map(({ length }) => length))
    const bank = seats[0]?.bank
    if (bank && isFilledBy(bank, seats) && fits(bank, longest, more)) return bank
    return move(seats, roomFor(layout === 'in place' ? longest + more : longest))
  }

  const move = (seats: readonly Seat[], capacity: number): Bank => {
    const left = new Set(seats.flatMap(({ bank }) => bank ?? []))
    const emptied = [...left].filter((bank) =>
      [...bank.seats].every((seat) => seats.includes(seat)),
    )
    const sources = seats.map(({ bank }) => [...(bank?.tensors ?? [])])
    const needless = emptied.map(({ tensors }) => tensors.splice(0))
    const tensors: Tensor[] = []
    try {
      for (const [index, slot] of slots.entries()) {
        const tensor = blocks.allocate(slot, seats.length, capacity)
        tensors.push(tensor)
        seats.forEach(({ row, length }, to) => {
          const from = sources[to]?.[index]
          if (from) blocks.copy(slot, { tensor: from, row }, { tensor, row: to }, length)
        })
        // One after the other: there is never twice the memory of all.
        blocks.flush()
        for (const old of needless) old.shift()?.dispose()
      }
    } catch (thrown) {
      for (const tensor of [...tensors, ...needless.flat()]) tensor.dispose()
      throw thrown
    }
    return enter(seats, { tensors, rows: seats.length, capacity, seats: new Set() })
  }

  const enter = (seats: readonly Seat[], bank: Bank): Bank => {
    const before = seats.map((seat) => seat.bank)
    seats.forEach((seat, row) => {
      seat.bank?.seats.delete(seat)
      bank.seats.add(seat)
      Object.assign(seat, { bank, row })
    })
    for (const old of new Set(before)) if (old) tidy(old)
    return bank
  }

  /** Frees a bank that nobody is in, and moves the last ones out of one that is half empty. */
  const tidy = (bank: Bank): void => {
    if (bank.seats.size === 0) {
      for (const tensor of bank.tensors.splice(0)) tensor.dispose()
    } else if (bank.rows > 1 && bank.seats.size * 2 <= bank.rows) {
      for (const seat of bank.seats) move([seat], roomFor(seat.length))
    }
  }

  const replace: Banks['replace'] = (seats, tensors) => {
    if (layout === 'in place') return
    const [slot] = slots
    const capacity = slot ? (tensors[0]?.dims[slot.axis] ?? 0) : 0
    enter(
      seats.toSorted((a, b) => a.row - b.row),
      {
        tensors,
        rows: seats.length,
        capacity,
        seats: new Set(),
      },
    )
  }

  const fork: Banks['fork'] = (seat, length) => {
    const copy: Seat = { bank: null, row: 0, length }
    const { bank, row } = seat
    if (!bank || length === 0) return copy
    // What no run writes to can be shared.
    bank.seats.add(copy)
    Object.assign(copy, { bank, row })
    if (layout === 'in place') move([copy], roomFor(length))
    return copy
  }

  const leave: Banks['leave'] = (seat) => {
    const { bank } = seat
    if (!bank) return
    seat.bank = null
    bank.seats.delete(seat)
    tidy(bank)
  }

  const bytes: Banks['bytes'] = ({ bank }) =>
    bank ? bank.tensors.reduce((sum, tensor) => sum + bytesOf(tensor), 0) / bank.rows : 0

  return { gather, replace, fork, leave, bytes }
}

/** Whether these are all of its rows. */
function isFilledBy(bank: Bank, seats: readonly Seat[]): boolean {
  const rows = new Set(seats.map(({ row }) => row))
  const isFull = rows.size === bank.rows && seats.length === bank.rows
  return isFull && seats.every((seat) => seat.bank === bank)
}
