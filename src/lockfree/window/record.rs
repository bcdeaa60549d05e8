//! The two-version record of a spread lane: see `spread` for who writes it when.

use crate::sync::atomic::{AtomicU64, Ordering, fence};

const WORDS: usize = 14;

/// What the consume word alone cannot say: a [`Cut`], word by word.
pub(super) struct LaneRecord([AtomicU64; WORDS]);

/// The same, read.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Cut {
    pub version: u64,
    /// Messages finished, and their bytes.
    pub finished: u64,
    pub bytes: u64,
    pub in_count: u64,
    pub in_min: i64,
    pub in_max: i64,
    /// Ready below `k`.
    pub again_count: u64,
    pub again_min: i64,
    pub again_max: i64,
    /// Finished at or above `k`.
    pub above: u64,
    /// First rank at or above `k` that is not finished.
    pub fresh: u64,
    /// Ranks below it were looked at for `top`.
    pub seen: u64,
    /// Highest ready offset at or above `k` and below `seen`, if anything is finished there.
    pub top: i64,
    /// Lowest outstanding offset below `k`, `i64::MAX` if none.
    pub lowest: i64,
}

impl Cut {
    fn words(&self) -> [u64; WORDS] {
        [
            self.version,
            self.finished,
            self.bytes,
            self.in_count,
            self.in_min as u64,
            self.in_max as u64,
            self.again_count,
            self.again_min as u64,
            self.again_max as u64,
            self.above,
            self.fresh,
            self.seen,
            self.top as u64,
            self.lowest as u64,
        ]
    }

    fn from_words(words: [u64; WORDS]) -> Self {
        Self {
            version: words[0],
            finished: words[1],
            bytes: words[2],
            in_count: words[3],
            in_min: words[4] as i64,
            in_max: words[5] as i64,
            again_count: words[6],
            again_min: words[7] as i64,
            again_max: words[8] as i64,
            above: words[9],
            fresh: words[10],
            seen: words[11],
            top: words[12] as i64,
            lowest: words[13] as i64,
        }
    }
}

impl LaneRecord {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    pub(super) fn write(&self, cut: &Cut) {
        // ORDERING: Release fence, then Relaxed — who reads a word of this version also sees that
        // the version before the last is over. Published by the consume or progress word.
        // Model: requeue_snapshot
        if !crate::sync::mutated("record_no_fence") {
            fence(Ordering::Release);
        }
        // ORDERING: Relaxed — as above.
        for (to, word) in self.0.iter().zip(cut.words()) {
            to.store(word, Ordering::Relaxed);
        }
    }

    /// Means something only if the consume word is the same afterwards.
    pub(super) fn read(&self) -> Cut {
        // ORDERING: Relaxed — checked by the caller against the consume word.
        Cut::from_words(std::array::from_fn(|word| self.0[word].load(Ordering::Relaxed)))
    }
}

#[cfg(all(test, not(any(lk_loom, lk_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let numbers: [u64; WORDS] = std::array::from_fn(|word| word as u64 + 1);
        let cut = Cut::from_words(numbers);
        assert_eq!(cut.words(), numbers);
        let record = LaneRecord::new();
        record.write(&cut);
        assert_eq!(record.read(), cut);
    }
}
