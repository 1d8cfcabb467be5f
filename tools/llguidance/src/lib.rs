//! llguidance as functions of numbers, for `src/constraint/instance.ts`.
//!
//! An instance of the module has one vocabulary, any number of compiled grammars, and any number of matchers, which
//! are numbered from 0. Texts go in as UTF-8 in memory of [`allocate`]. A function that fails returns [`FAILED`] and
//! leaves its reason in [`result`]. A panic traps. The matchers of other grammars can be used after that.
//!
//! All state is in linear memory between two calls, so a copy of that memory is a copy of the instance.
use llguidance::api::{ParserLimits, StopReason, TopLevelGrammar};
use llguidance::toktrie::{parse_numeric_token, ApproximateTokEnv, SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenId};
use llguidance::{Matcher, ParserFactory};
use std::cell::UnsafeCell;
use std::sync::Arc;

const FAILED: i32 = -1;

/// Limits of one grammar, in steps. The times are those of Node 20 on one slow core, with 151,669 tokens.
const LIMITS: ParserLimits = ParserLimits {
    // A grammar that exceeds it is refused after 30 to 70 ms. Of 449 published schemas, none does.
    initial_lexer_fuel: 1_000_000,
    // A token takes 10 to 30 ms where it is exceeded. One token of long counts of Unicode classes takes 60 ms, although
    // it needs less than half, because their states are large. One of 449 published schemas exceeds it. 50,000 would be
    // too little for two more, and 100,000 for an email address of at most 30 characters that matches a pattern as well.
    step_lexer_fuel: 200_000,
    // A token takes 15 to 20 ms where it is exceeded. A rule of 200 single characters needs 50,000.
    step_max_items: 200_000,
    // States stay in memory, with 1 to 2 kB each.
    max_lexer_states: 100_000,
    max_grammar_size: 500_000,
    // `compile` sets it.
    max_items_in_row: 0,
    precompute_large_lexemes: true,
    verbose_errors: false,
};

/// State of the instance.
struct State {
    vocabulary: Option<Vocabulary>,
    grammars: Slots<Matcher>,
    matchers: Slots<Text>,
    /// Bytes that the last function returned, or why it failed.
    result: Vec<u8>,
}

struct Vocabulary {
    environment: TokEnv,
    factory: ParserFactory,
}

/// A text that is matched token by token.
struct Text {
    matcher: Matcher,
    /// Mask of the next token. It is empty after each token.
    mask: Option<SimpleVob>,
    /// Bytes that must come next, as far as they were asked for.
    forced: Vec<u8>,
    /// `true` after an end token.
    has_ended: bool,
}

/// Values by number. A number is used again after its value was removed.
struct Slots<T>(Vec<Option<T>>);

impl<T> Slots<T> {
    fn add(&mut self, value: T) -> i32 {
        let free = self.0.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        });
        self.0[index] = Some(value);
        index as i32
    }

    fn get(&mut self, index: u32) -> &mut T {
        self.0[index as usize].as_mut().expect("a value that was removed")
    }

    fn remove(&mut self, index: u32) {
        self.0[index as usize] = None;
    }
}

/// A cell without a borrow count, because a trap would leave the state borrowed forever.
struct Global(UnsafeCell<State>);

// The module has one thread.
unsafe impl Sync for Global {}

static STATE: Global = Global(UnsafeCell::new(State {
    vocabulary: None,
    grammars: Slots(Vec::new()),
    matchers: Slots(Vec::new()),
    result: Vec::new(),
}));

/// Runs the work, which must not call this function.
fn with_state<T>(work: impl FnOnce(&mut State) -> T) -> T {
    work(unsafe { &mut *STATE.0.get() })
}

fn trie_of(vocabulary: &Option<Vocabulary>) -> Result<&TokTrie, String> {
    let known = vocabulary.as_ref().ok_or("The vocabulary is not set.")?;
    Ok(known.environment.tok_trie())
}

/// Runs the work, and keeps why it fails as the result.
fn attempt(work: impl FnOnce(&mut State) -> Result<i32, String>) -> i32 {
    with_state(|state| {
        work(state).unwrap_or_else(|reason| {
            state.result = reason.into_bytes();
            FAILED
        })
    })
}

/// Returns the bytes at the address.
///
/// # Safety
/// The caller wrote as many bytes there.
unsafe fn input<'a>(address: *const u8, length: usize) -> &'a [u8] {
    std::slice::from_raw_parts(address, length)
}

/// Allocates memory for input. [`release`] frees it.
#[no_mangle]
pub extern "C" fn allocate(length: usize) -> *mut u8 {
    Box::into_raw(vec![0u8; length].into_boxed_slice()) as *mut u8
}

/// Frees memory of [`allocate`].
///
/// # Safety
/// The address and the length are those of a call of [`allocate`].
#[no_mangle]
pub unsafe extern "C" fn release(address: *mut u8, length: usize) {
    drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(address, length)));
}

/// Returns the address of the last function's result.
#[no_mangle]
pub extern "C" fn result() -> *const u8 {
    with_state(|state| state.result.as_ptr())
}

#[no_mangle]
pub extern "C" fn result_length() -> usize {
    with_state(|state| state.result.len())
}

/// Sets the vocabulary: for each token its length in bytes as 16 bits, little-endian, and its bytes. A token without
/// bytes has no text. End tokens are 32 bits each.
///
/// # Safety
/// The input is that of [`input`], twice.
#[no_mangle]
pub unsafe extern "C" fn set_vocabulary(
    tokens: *const u8,
    tokens_length: usize,
    end_tokens: *const u8,
    end_tokens_length: usize,
) -> i32 {
    let mut rest = input(tokens, tokens_length);
    let mut words = Vec::new();
    while let [low, high, after @ ..] = rest {
        let (word, others) = after.split_at(u16::from_le_bytes([*low, *high]) as usize);
        words.push(word.to_vec());
        rest = others;
    }
    let ends: Vec<TokenId> = input(end_tokens, end_tokens_length)
        .chunks_exact(4)
        .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        .collect();
    attempt(|state| {
        let first = *ends.first().ok_or("The vocabulary has no end token.")?;
        let info = TokRxInfo::new(words.len() as u32, first);
        let trie = TokTrie::from(&info, &words).with_eos_tokens(&ends);
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new_simple(&environment).map_err(|error| error.to_string())?;
        factory.quiet();
        *factory.limits_mut() = LIMITS;
        state.vocabulary = Some(Vocabulary { environment, factory });
        Ok(words.len() as i32)
    })
}

/// Compiles a grammar in Lark syntax, whose parser may have so many items in a row. Returns its number.
///
/// # Safety
/// The input is that of [`input`].
#[no_mangle]
pub unsafe extern "C" fn compile(source: *const u8, length: usize, max_items_in_row: usize) -> i32 {
    let source = String::from_utf8_lossy(input(source, length)).into_owned();
    attempt(|state| {
        let vocabulary = state.vocabulary.as_mut().ok_or("The vocabulary is not set.")?;
        vocabulary.factory.limits_mut().max_items_in_row = max_items_in_row;
        let matcher = Matcher::new(vocabulary.factory.create_parser(TopLevelGrammar::from_lark(source)));
        match matcher.get_error() {
            Some(reason) => Err(to_reason(reason)),
            None => Ok(state.grammars.add(matcher)),
        }
    })
}

#[no_mangle]
pub extern "C" fn drop_grammar(grammar: u32) {
    with_state(|state| state.grammars.remove(grammar));
}

/// Starts a text of a grammar. Returns the number of its matcher. Texts of a grammar share what its lexer has learned.
#[no_mangle]
pub extern "C" fn open(grammar: u32) -> i32 {
    with_state(|state| {
        let matcher = state.grammars.get(grammar).clone();
        state.matchers.add(Text { matcher, mask: None, forced: Vec::new(), has_ended: false })
    })
}

#[no_mangle]
pub extern "C" fn close(matcher: u32) {
    with_state(|state| state.matchers.remove(matcher));
}

impl Text {
    fn mask(&mut self, trie: &TokTrie) -> Result<&SimpleVob, String> {
        if self.mask.is_none() {
            self.mask = Some(self.compute_mask(trie)?);
        }
        Ok(self.mask.as_ref().expect("the mask was set"))
    }

    fn compute_mask(&mut self, trie: &TokTrie) -> Result<SimpleVob, String> {
        if self.has_ended {
            return Ok(trie.alloc_token_set());
        }
        // The library finds no token for these bytes, because a special token has none in the trie.
        if let [TokTrie::SPECIAL_TOKEN_MARKER, name @ ..] = &self.forced[..] {
            if let Some((_, token)) = parse_numeric_token(name) {
                return Ok(trie.singleton_token_set(token));
            }
        }
        self.matcher.compute_mask_or_eos().or_else(|error| {
            let reason = to_reason(error);
            let is_dead_end = reason == StopReason::NoExtensionBias.to_string();
            if is_dead_end { Ok(trie.alloc_token_set()) } else { Err(reason) }
        })
    }

    /// Returns `false` and changes nothing if the token may not come next.
    fn accept(&mut self, token: TokenId, trie: &TokTrie) -> Result<bool, String> {
        if self.has_ended || token as usize >= trie.vocab_size() {
            return Ok(false);
        }
        let is_end = trie.eos_tokens().contains(&token);
        // A text that can only end has no parser any more.
        let ends_stopped = is_end && self.matcher.is_stopped() && !self.matcher.is_error();
        if !ends_stopped && self.matcher.try_consume_tokens(&[token]).map_err(to_reason)? == 0 {
            return Ok(false);
        }
        self.has_ended = is_end;
        self.mask = None;
        let length = trie.decode_raw(&[token]).len();
        self.forced.drain(..length.min(self.forced.len()));
        Ok(true)
    }
}

/// Returns the library's reason without the marks of its report.
fn to_reason(error: impl std::fmt::Display) -> String {
    error.to_string().replace("\n<non-verbose/>", "")
}

/// Computes the mask of the next token: a bit for each token, 32 in a word, the first lowest. Returns its address,
/// which is valid until the next call for this matcher, or [`FAILED`].
#[no_mangle]
pub extern "C" fn mask(matcher: u32) -> i32 {
    attempt(|state| {
        let mask = state.matchers.get(matcher).mask(trie_of(&state.vocabulary)?)?;
        Ok(mask.as_slice().as_ptr() as i32)
    })
}

/// Accepts the next token. Returns 1, or 0 if it may not come next, or [`FAILED`].
#[no_mangle]
pub extern "C" fn accept(matcher: u32, token: TokenId) -> i32 {
    attempt(|state| {
        let is_accepted = state.matchers.get(matcher).accept(token, trie_of(&state.vocabulary)?)?;
        Ok(i32::from(is_accepted))
    })
}

/// Accepts a text. Returns 1, or 0 if it may not come next, or [`FAILED`].
///
/// # Safety
/// The input is that of [`input`].
#[no_mangle]
pub unsafe extern "C" fn accept_text(matcher: u32, text: *const u8, length: usize) -> i32 {
    let text = input(text, length);
    attempt(|state| {
        let trie = trie_of(&state.vocabulary)?;
        let tokens = trie.greedy_tokenize(text);
        if trie.decode_raw(&tokens) != text {
            return Err("The vocabulary has no tokens for the text.".to_string());
        }
        let own = state.matchers.get(matcher);
        for token in tokens {
            if !own.accept(token, trie)? {
                return Ok(0);
            }
        }
        Ok(1)
    })
}

/// Puts the bytes that must come next into the result. A special token is the byte 0xff and its id in brackets.
#[no_mangle]
pub extern "C" fn find_forced(matcher: u32) {
    with_state(|state| {
        let own = state.matchers.get(matcher);
        own.forced = if own.matcher.is_stopped() { Vec::new() } else { own.matcher.compute_ff_bytes() };
        state.result.clone_from(&own.forced);
    });
}

/// Returns 1 if a longer token that begins like this one may come in its place, and 0 if not, or [`FAILED`].
#[no_mangle]
pub extern "C" fn can_extend(matcher: u32, token: TokenId) -> i32 {
    attempt(|state| {
        let trie = trie_of(&state.vocabulary)?;
        let bytes = trie.token(token);
        let node = if bytes.is_empty() { None } else { trie.child_at_bytes(trie.root(), bytes) };
        let Some(node) = node else {
            return Ok(0);
        };
        let mask = state.matchers.get(matcher).mask(trie)?;
        Ok(i32::from(may_continue(trie, node, mask)))
    })
}

/// Returns `true` if the mask has a token below the node.
fn may_continue(trie: &TokTrie, node: &llguidance::toktrie::TrieNode, mask: &SimpleVob) -> bool {
    trie.node_children(node).any(|child| {
        child.token_id().is_some_and(|token| mask.is_allowed(token)) || may_continue(trie, child, mask)
    })
}
