/** Options of `server.bridge()`. */
export interface BridgeOptions {
  /** Token that `inorigin bridge` printed. */
  token: string
  /** Callback for changes of the state, such as to show the user that the tab is lent. */
  onChange?: (state: BridgeState) => void
  /** Signal that cancels the connection, and later closes the bridge. */
  signal?: AbortSignal
}

/** State of a bridge. */
export interface BridgeState {
  status: 'connected' | 'closed'
  /** Number of requests of other programs that the tab answers at the moment. */
  requests: number
  /** Number of requests that ended since the bridge was opened. */
  answered: number
}

/** Connection by which programs outside the browser use this tab. */
export interface Bridge {
  readonly state: BridgeState
  /**
   * Promise that resolves when the bridge was closed by {@link Bridge.close} or by the signal. It
   * rejects with `bridge_unreachable` when the command ended or closed the connection.
   */
  readonly closed: Promise<void>
  /** Cancels open requests and closes the connection. */
  close(): void
}
