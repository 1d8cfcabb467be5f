/** For work that a device may never come to an end with. */

/** What the work gives, or `otherwise` where that takes longer. Rejects as the work does before. */
export function within<T, Otherwise>(
  milliseconds: number,
  work: Promise<T>,
  otherwise: Otherwise,
): Promise<T | Otherwise> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<Otherwise>((resolve) => {
    timer = setTimeout(resolve, milliseconds, otherwise)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
