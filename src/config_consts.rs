//! Sizes that shrink under a model checker, so that small models reach the edges.

/// Messages in one segment: a power of two, at most 64 (the bits of one word).
pub(crate) const SEGMENT_SLOTS: usize = if cfg!(lk_loom) {
    2
} else if cfg!(any(lk_shuttle, lk_stress)) {
    4
} else {
    64
};

/// Segments that share one node of the offset index. Measured: one node a segment costs about
/// 6 ns a message, one in sixteen less than half a nanosecond, and the walk stays short.
pub(crate) const RUN_SEGMENTS: u64 = if cfg!(any(lk_loom, lk_shuttle, lk_stress)) { 2 } else { 16 };

/// Put times that a segment keeps in its header before it needs its side block.
pub(crate) const HEADER_TIMES: usize =
    if cfg!(any(lk_loom, lk_shuttle, lk_stress)) { 1 } else { 3 };

/// Elements of the first page of a growing array; each page has twice as many as the one before.
pub(crate) const PAGE_FIRST: usize = if cfg!(lk_loom) {
    1
} else if cfg!(any(lk_shuttle, lk_stress)) {
    2
} else {
    64
};

/// Most pages of a growing array: more elements than 32 bits can number, but in models.
pub(crate) const PAGES_MAX: usize = if cfg!(lk_loom) { 2 } else { 27 };
