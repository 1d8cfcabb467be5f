/** The file `files.json` of the folder `inorigin/`, which `inorigin init` writes. */
export interface FileList {
  written_by: 'inorigin init'
  files: ListedFile[]
}

/** A file of that folder. */
export interface ListedFile {
  /** Path relative to the folder, with forward slashes. */
  name: string
  /** SHA-256 digest of the file. */
  sha256: string
  /**
   * `true` for a file that is kept for offline use before it is used: a script, or the catalog. The
   * others are large, and a device needs few of them, so they are kept when they are used.
   */
  precache: boolean
}
