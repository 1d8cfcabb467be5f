/** A promise that a test settles. */
export interface Deferred<T> {
  promise: Promise<T>
  resolve(value: T): void
  reject(error: unknown): void
}

export function createDeferred<T = void>(): Deferred<T> {
  let resolve: Deferred<T>['resolve'] = () => undefined
  let reject: Deferred<T>['reject'] = () => undefined
  const promise = new Promise<T>((...settle) => ([resolve, reject] = settle))
  return { promise, resolve, reject }
}
