/** Reads from a JPEG's header whether a browser turns the image. */

/** Marker of the segment that holds Exif data, and those of the frame and scan after it. */
const [APP1, START_OF_SCAN, END_OF_IMAGE] = [0xe1, 0xda, 0xd9] as const

/** Exif tag of the orientation, 1 to 8. */
const ORIENTATION_TAG = 0x0112

/** Number of entries of an Exif directory to search. Cameras write a few dozen. */
const MAX_ENTRIES = 1_000

/**
 * Returns `true` if the image is stored lying on its side, so that its width and height are swapped
 * when it is shown (Exif 2.3, orientations 5 to 8).
 */
export function isLyingJpeg(bytes: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  try {
    if (view.getUint16(0) !== 0xffd8) return false
    let at = 2
    while (view.getUint8(at) === 0xff) {
      const marker = view.getUint8(at + 1)
      if (marker === START_OF_SCAN || marker === END_OF_IMAGE) return false
      // Any number of fill bytes may come before a marker.
      if (marker === 0xff) at += 1
      else if (marker === APP1 && isExif(view, at + 4)) return readOrientation(view, at + 10) >= 5
      else at += 2 + view.getUint16(at + 2)
    }
  } catch (error) {
    // The header is truncated.
    if (!(error instanceof RangeError)) throw error
  }
  return false
}

const isExif = (view: DataView, at: number): boolean =>
  view.getUint32(at) === 0x45786966 && view.getUint16(at + 4) === 0

/** Returns the orientation in the TIFF structure that begins there; 1 if there is none. */
function readOrientation(view: DataView, start: number): number {
  const isLittle = view.getUint16(start) === 0x4949
  const directory = start + view.getUint32(start + 4, isLittle)
  const count = Math.min(view.getUint16(directory, isLittle), MAX_ENTRIES)
  for (let index = 0; index < count; index++) {
    const entry = directory + 2 + index * 12
    if (view.getUint16(entry, isLittle) === ORIENTATION_TAG)
      return view.getUint16(entry + 8, isLittle)
  }
  return 1
}
