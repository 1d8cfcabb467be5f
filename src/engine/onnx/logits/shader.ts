/**
 * The shaders that find the highest logits of rows. They compare logits by integer keys, because
 * drivers need not support Infinity and NaN in floating-point arithmetic. They do not use
 * subgroups, with which a driver is known to compute wrong numbers.
 */

// Layout of the shaders' input (a job) and output (records), in 32-bit words. A job has a head for
// all rows, a part for each row, then entries and token masks. A record has the highest key, the
// sum of exponentials relative to it, and unordered pairs of key and id. It has as many pairs as
// the job has slots; unused pairs have key 0.

/** Number of logits that one workgroup scans, and that one record covers. */
export const CHUNK_LOGITS = 2048

/** Words of a job's head: vocabulary, 1 if logits are float16, number of chunks, of slots. */
export const HEAD_WORDS = 4

/**
 * Words of a job for each row: index of its first logit, number of wanted candidates,
 * 1 / temperature, offset and number of entries, offset of the mask.
 */
export const ROW_WORDS = 6

/** Words of an entry: id, factor of a positive logit, factor of a negative logit, bias. */
export const ENTRY_WORDS = 4

/** Returns the number of words of a record with this many slots. */
export const recordWords = (slots: number): number => 2 + 2 * slots

/** Byte of a record at which the id of its only candidate is. */
export const BEST_ID_BYTE = 12

/** Code that reads a job, and that compares and weighs logits. */
const LOGITS = /* wgsl */ `
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read> job: array<u32>;
@group(0) @binding(2) var<storage, read_write> records: array<u32>;

const CHUNK = ${CHUNK_LOGITS}u;
const INFINITE = 0x7f800000u;
const ZERO = 0x80000000u;

struct Row { first: u32, wanted: u32, coldness: f32, entries: u32, count: u32, mask: u32 }

fn rowOf(index: u32) -> Row {
  let at = ${HEAD_WORDS}u + index * ${ROW_WORDS}u;
  return Row(
    job[at], job[at + 1u], bitcast<f32>(job[at + 2u]), job[at + 3u], job[at + 4u], job[at + 5u],
  );
}

fn isFinite(key: u32) -> bool { return key > 0x007fffffu && key < 0xff800000u; }

fn scoreOf(key: u32) -> f32 {
  return bitcast<f32>(select(~key, key & 0x7fffffffu, key >= ZERO));
}

// Returns the exponential of a logit relative to that of the highest one.
fn weight(key: u32, highest: u32, coldness: f32) -> f32 {
  return exp(max((scoreOf(key) - scoreOf(highest)) * coldness, -100.0));
}

var<workgroup> peak: atomic<u32>;
var<workgroup> sums: array<f32, LANES>;

fn total(lane: u32, part: f32) -> f32 {
  sums[lane] = part;
  for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
    workgroupBarrier();
    if (lane < stride) { sums[lane] += sums[lane + stride]; }
  }
  return workgroupUniformLoad(&sums[0]);
}
`

/** Code that selects the highest elements and writes them into a record. */
const SELECTION = /* wgsl */ `
// State of the search: the known leading digits of the lowest element to keep. 'need' is how many
// of the elements with these digits to keep.
struct Edge { digits: vec2u, known: vec2u, need: u32, found: u32 }

var<workgroup> edge: Edge;
var<workgroup> bins: array<atomic<u32>, 256>;
var<workgroup> sixteens: array<u32, 16>;
var<workgroup> taken: atomic<u32>;
var<workgroup> best: atomic<u32>;

// Finds the lowest of the 'wanted' highest elements, by digits of 8 bits (radix select). An element
// is a key and the complement of an id. No two are equal; of equal keys, the lower id is higher.
fn find(lane: u32, wanted: u32, length: u32) {
  if (lane == 0u) { edge = Edge(vec2u(), vec2u(), wanted, 0u); }
  for (var digit = 0u; digit < 8u; digit++) {
    for (var bin = lane; bin < 256u; bin += LANES) { atomicStore(&bins[bin], 0u); }
    let before = workgroupUniformLoad(&edge);
    if (before.found == 1u) { break; }
    let shift = 24u - 8u * (digit & 3u);
    for (var index = lane; index < length; index += LANES) {
      let element = elementAt(index);
      if (all((element & before.known) == before.digits)) {
        atomicAdd(&bins[(element[digit / 4u] >> shift) & 255u], 1u);
      }
    }
    workgroupBarrier();
    if (lane < 16u) {
      var sum = 0u;
      for (var bin = 0u; bin < 16u; bin++) { sum += atomicLoad(&bins[lane * 16u + bin]); }
      sixteens[lane] = sum;
    }
    workgroupBarrier();
    if (lane == 0u) {
      var need = before.need;
      var group = 15u;
      while (group > 0u && sixteens[group] < need) { need -= sixteens[group]; group--; }
      var bin = group * 16u + 15u;
      while (bin > 0u && atomicLoad(&bins[bin]) < need) { need -= atomicLoad(&bins[bin]); bin--; }
      edge.digits[digit / 4u] |= bin << shift;
      edge.known[digit / 4u] |= 255u << shift;
      edge.need = need;
      edge.found = u32(atomicLoad(&bins[bin]) == need);
    }
    workgroupBarrier();
  }
}

fn isTaken(element: vec2u, start: Edge) -> bool {
  let digits = element & start.known;
  return digits.x > start.digits.x || (digits.x == start.digits.x && digits.y >= start.digits.y);
}

// Writes the 'wanted' highest elements after the first two words of a record; 'highest' is a key.
fn keep(lane: u32, record: u32, wanted: u32, length: u32, highest: u32) {
  if (lane >= wanted && lane < job[3]) { records[record + 2u + 2u * lane] = 0u; }
  if (wanted == 1u) {
    for (var index = lane; index < length; index += LANES) {
      let element = elementAt(index);
      if (element.x == highest) { atomicMax(&best, element.y); }
    }
    workgroupBarrier();
    if (lane == 0u) {
      records[record + 2u] = highest;
      records[record + 3u] = idAt(~atomicLoad(&best));
    }
    return;
  }
  find(lane, wanted, length);
  let start = workgroupUniformLoad(&edge);
  for (var index = lane; index < length; index += LANES) {
    let element = elementAt(index);
    if (isTaken(element, start)) {
      let slot = record + 2u + 2u * atomicAdd(&taken, 1u);
      records[slot] = element.x;
      records[slot + 1u] = idAt(~element.y);
    }
  }
}
`

/** Returns the code that both shaders share; `lanes` is the number of invocations per workgroup. */
const common = (lanes: number): string => `const LANES = ${lanes}u;${LOGITS}${SELECTION}`

/**
 * Shader that writes a record for each chunk of each row. It uses few lanes, because there are many
 * chunks and each invocation is slow on software adapters.
 */
export const SCAN = /* wgsl */ `${common(64)}
var<workgroup> keys: array<u32, CHUNK>;
var<private> begin: u32;

fn elementAt(index: u32) -> vec2u { return vec2u(keys[index], ~index); }

fn idAt(index: u32) -> u32 { return begin + index; }

// Returns the bits of a logit as a 32-bit float; logits may be stored as float16.
fn bitsAt(index: u32) -> u32 {
  if (job[1] == 0u) { return source[index]; }
  let half = (source[index / 2u] >> (16u * (index & 1u))) & 0xffffu;
  let magnitude = half & 0x7fffu;
  let sign = (half & 0x8000u) << 16u;
  if (magnitude < 0x400u) { return sign | bitcast<u32>(f32(magnitude) * 0x1p-24f); }
  if (magnitude < 0x7c00u) { return sign | ((magnitude << 13u) + 0x38000000u); }
  return sign | INFINITE | (magnitude << 13u);
}

fn adjusted(bits: u32, entry: u32) -> u32 {
  let magnitude = bits & 0x7fffffffu;
  let amount = job[entry + 3u];
  if (magnitude > INFINITE) { return bits; }
  if ((amount & 0x7fffffffu) == INFINITE) {
    return select(amount, 0x7fc00000u, magnitude == INFINITE && amount != bits);
  }
  if (magnitude == INFINITE) { return bits; }
  let score = bitcast<f32>(bits);
  let factor = bitcast<f32>(job[entry + select(2u, 1u, score > 0.0)]);
  return bitcast<u32>(score * factor + bitcast<f32>(amount));
}

fn keyOf(bits: u32) -> u32 {
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > INFINITE) { return 0xffffffffu; }
  if (magnitude == 0u) { return ZERO; }
  return select(bits | ZERO, ~bits, bits >= ZERO);
}

// Returns the index of a row's first entry whose id is at least this one; entries are sorted.
fn entryFrom(row: Row, id: u32) -> u32 {
  var low = 0u;
  var high = row.count;
  while (low < high) {
    let middle = (low + high) / 2u;
    let isBelow = job[row.entries + ${ENTRY_WORDS}u * middle] < id;
    if (isBelow) { low = middle + 1u; } else { high = middle; }
  }
  return low;
}

fn isAllowed(row: Row, id: u32) -> bool {
  return row.mask == 0u || ((job[row.mask + id / 32u] >> (id & 31u)) & 1u) == 1u;
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let row = rowOf(group.y);
  let start = group.x * CHUNK;
  let length = min(CHUNK, job[0] - start);
  begin = start;
  for (var index = lane; index < length; index += LANES) {
    keys[index] = bitsAt(row.first + begin + index);
  }
  workgroupBarrier();
  let end = entryFrom(row, begin + length);
  for (var index = entryFrom(row, begin) + lane; index < end; index += LANES) {
    let entry = row.entries + ${ENTRY_WORDS}u * index;
    let at = job[entry] - begin;
    keys[at] = adjusted(keys[at], entry);
  }
  workgroupBarrier();

  var highest = 0u;
  for (var index = lane; index < length; index += LANES) {
    var key = keyOf(keys[index]);
    if (key != 0xffffffffu && !isAllowed(row, begin + index)) { key = 0x007fffffu; }
    keys[index] = key;
    highest = max(highest, key);
  }
  atomicMax(&peak, highest);
  workgroupBarrier();
  highest = atomicLoad(&peak);

  var sum = 0.0;
  if (row.coldness > 0.0) {
    for (var index = lane; index < length && isFinite(highest); index += LANES) {
      if (isFinite(keys[index])) { sum += weight(keys[index], highest, row.coldness); }
    }
    sum = total(lane, sum);
  }

  let record = (group.y * job[2] + group.x) * (2u + 2u * job[3]);
  if (lane == 0u) {
    records[record] = highest;
    records[record + 1u] = bitcast<u32>(sum);
  }
  keep(lane, record, min(row.wanted, length), length, highest);
}
`

/** Shader that merges the records of each row's chunks into one record. */
export const MERGE = /* wgsl */ `${common(256)}
var<private> begin: u32;

fn pairAt(index: u32) -> u32 {
  let slots = job[3];
  return begin + (index / slots) * (2u + 2u * slots) + 2u + 2u * (index % slots);
}

fn elementAt(index: u32) -> vec2u {
  let pair = pairAt(index);
  return vec2u(source[pair], ~source[pair + 1u]);
}

fn idAt(id: u32) -> u32 { return id; }

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let row = rowOf(group.y);
  let chunks = job[2];
  let words = 2u + 2u * job[3];
  begin = group.y * chunks * words;

  var highest = 0u;
  for (var chunk = lane; chunk < chunks; chunk += LANES) {
    highest = max(highest, source[begin + chunk * words]);
  }
  atomicMax(&peak, highest);
  workgroupBarrier();
  highest = atomicLoad(&peak);

  var sum = 0.0;
  if (row.coldness > 0.0) {
    for (var chunk = lane; chunk < chunks && isFinite(highest); chunk += LANES) {
      let key = source[begin + chunk * words];
      let part = bitcast<f32>(source[begin + chunk * words + 1u]);
      if (isFinite(key)) { sum += part * weight(key, highest, row.coldness); }
    }
    sum = total(lane, sum);
  }

  let record = group.y * words;
  if (lane == 0u) {
    records[record] = highest;
    records[record + 1u] = bitcast<u32>(sum);
  }
  keep(lane, record, row.wanted, chunks * job[3], highest);
}
`
