/**
 * Stores the KV caches of sequences. A bank has one KV tensor per cache slot of the graph, with a
 * row for each sequence. The sequences of a batch are gathered in one bank. They stay there while
 * the batch is the same, so that nothing is copied.
 */
import type { Tensor } from 'onnxruntime-web'
import { bytesOf } from '../tensor.ts'
import type { Blocks } from './blocks.ts'
import type { CacheSlot } from './graph.ts'

/** Location of a sequence's KV cache. */
export interface Seat {
  /** Bank with the KV cache; `null` if there is none yet. */
  bank: Bank | null
  row: number
  /** Number of the sequence's tokens; the bank may have room for more. */
  length: number
}

/** KV tensors with a row for each of some sequences. */
export interface Bank {
  /** One KV tensor per cache slot. */
  readonly tensors: Tensor[]
  readonly rows: number
  /** Number of tokens for which a row has room. */
  readonly capacity: number
  readonly seats: Set<Seat>
}

/** How a run updates KV caches. */
export type Layout =
  /** A run writes into the bank that it reads; room is allocated beforehand. */
  | 'in place'
  /** A run returns new KV tensors; the whole length of those that it reads counts as past. */
  | 'exact'

export interface Banks {
  /**
   * Returns a bank whose rows are exactly these sequences; copies them if needed. In the layout
   * `in place`, it has room for `more` tokens.
   */
  gather(seats: readonly Seat[], more: number): Bank
  /** Replaces the bank of these sequences by the KV tensors that a run returned. */
  replace(seats: readonly Seat[], tensors: Tensor[]): void
  /** Creates another sequence with the first `length` tokens. */
  fork(seat: Seat, length: number): Seat
  /** Removes a sequence; frees its bank if it was the last one there. */
  leave(seat: Seat): void
  /** Returns the size of a row in bytes. */
  bytes(seat: Seat): number
}

/** Tokens that the first bank written in place has room for; doubled as a sequence grows. */
const ROOM = 256

/** Creates the storage for the KV caches of a graph with these cache slots. */
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
        // Freeing tensor by tensor avoids holding all of them twice.
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

  /** Frees an empty bank, and moves each sequence out of a bank that is at least half empty. */
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
    // In the layout `exact` no run writes to the bank, so both sequences can share a row.
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

/** Returns `true` if the sequences are exactly the rows of the bank. */
function isFilledBy(bank: Bank, seats: readonly Seat[]): boolean {
  const rows = new Set(seats.map(({ row }) => row))
  const isFull = rows.size === bank.rows && seats.length === bank.rows
  return isFull && seats.every((seat) => seat.bank === bank)
}
