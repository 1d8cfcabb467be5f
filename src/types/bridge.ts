/// <reference lib="esnext.disposable" preserve="true" />
/** Options of `server.bridge()`. */
export interface BridgeOptions {
  /** Token that `inorigin bridge` printed. */
  token: string
  /**
   * `true` to connect again when the command has ended and is started anew with the same token.
   * Default: `false`, so that the end of the command ends the agreement.
   */
  reconnect?: boolean
  /** Callback for changes of the state, such as to show the user that the tab is lent. */
  onChange?: (state: BridgeState) => void
  /** Signal that cancels the connection, and later closes the bridge. */
  signal?: AbortSignal
}

/** State of a bridge. */
export interface BridgeState {
  /** `reconnecting` while the command does not answer. */
  status: 'connected' | 'reconnecting' | 'closed'
  /** Number of requests of other programs that the tab answers at the moment. */
  requests: number
  /** Number of requests that ended since the bridge was opened. */
  answered: number
}

/** Connection by which programs outside the browser use this tab. `using` closes it after a block. */
export interface Bridge extends Disposable {
  readonly state: BridgeState
  /**
   * Promise that resolves when the bridge was closed by {@link Bridge.close} or by the signal. It
   * rejects with `bridge_unreachable` when the command ended or closed the connection, unless the
   * tab connects again, and with `bridge_refused` when the command has another token then.
   */
  readonly closed: Promise<void>
  /** Cancels open requests and closes the connection, or ends the wait for one. */
  close(): void
}
