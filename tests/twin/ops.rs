//! Operations on a queue as plain data, for generators of every kind.

use std::fmt;

/// Which delivery of a message a call names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Whichever is current.
    Any,
    /// The one the queue has now.
    Current,
    /// The one before it.
    Older,
    /// One that has not been.
    Newer,
}

/// Names a message relative to what is outstanding when the operation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Position among the outstanding messages (modulo their number) or, if `stray`, an offset
    /// counted back from `pull_offset`, which may have been finished or never put.
    pub nth: u32,
    pub stray: bool,
    pub delivery: Delivery,
}

/// How the offsets of a batch follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// Each is the one before plus this.
    Stride(u64),
    /// Each is the one before plus 1 to this, at random.
    Jitter(u32),
    /// Dense, with one gap of this width in the middle.
    Cliff(u64),
}

/// A batch relative to `pull_offset` when it is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// First offset, relative to `pull_offset`; below 0 is a re-pull.
    pub start: i64,
    pub len: u16,
    pub gaps: Gaps,
    /// 0: ascending. Otherwise the seed of a shuffle.
    pub shuffle: u64,
    /// Every so many messages one comes twice; 0: never.
    pub copy_every: u8,
    pub size: u32,
    pub attempts: u32,
    /// What the broker says its highest offset is, relative to the last of the batch.
    pub broker_ahead: Option<i16>,
}

/// One step. `sink` asks for the form of the verb that hands payloads back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Put {
        batch: Batch,
        sink: bool,
    },
    Advance {
        by: i64,
    },
    /// Asks for a second puller, then gives the first up and takes the role again.
    Puller,
    Begin,
    End {
        sink: bool,
    },
    DropTurn,
    /// Puts the turn down and takes it up again by its token.
    SuspendTurn,
    Take {
        who: u8,
        n: u16,
    },
    InFlight,
    Commit {
        sink: bool,
    },
    Rollback {
        sink: bool,
    },
    Requeue {
        who: u8,
        picks: Vec<Pick>,
        plus: u8,
        sink: bool,
    },
    Complete {
        who: u8,
        picks: Vec<Pick>,
        sink: bool,
    },
    NewConsumer,
    DropConsumer {
        who: u8,
        sink: bool,
    },
    SuspendConsumer {
        who: u8,
    },
    GiveBack {
        who: u8,
        picks: Vec<Pick>,
        sink: bool,
    },
    Claim {
        who: u8,
        pick: Pick,
    },
    Settle {
        nth: u8,
        sent: bool,
        delay_ms: i16,
        sink: bool,
    },
    DropClaim {
        nth: u8,
    },
    SuspendClaim {
        nth: u8,
    },
    Expired {
        limit_ms: i16,
        max: u8,
    },
    Tick {
        ms: i16,
    },
    Stop,
    Close {
        sink: bool,
    },
}

/// A sequence of operations, shown with one operation a line.
#[derive(Clone, PartialEq, Eq)]
pub struct Script(pub Vec<Op>);

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|op| write!(f, "\n  {op:?}"))
    }
}

/// A small generator of its own, so that a shuffle depends on nothing but its seed.
#[derive(Clone, Debug)]
pub struct SplitMix(pub u64);

impl SplitMix {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 to `n` - 1.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

impl Batch {
    /// A dense ascending batch from `pull_offset` on.
    pub fn dense(len: u16) -> Self {
        Self {
            start: 0,
            len,
            gaps: Gaps::Stride(1),
            shuffle: 0,
            copy_every: 0,
            size: 10,
            attempts: 0,
            broker_ahead: None,
        }
    }

    /// The offsets, in the order in which they are put.
    pub fn offsets(&self, pull_offset: i64) -> Vec<i64> {
        let mut random = SplitMix(self.shuffle ^ u64::from(self.len));
        let mut next = pull_offset.saturating_add(self.start);
        let mut offsets = Vec::new();
        for i in 0..self.len {
            offsets.push(next);
            if self.copy_every > 0 && i % u16::from(self.copy_every) == 0 {
                offsets.push(next);
            }
            let step = match self.gaps {
                Gaps::Stride(step) => step,
                Gaps::Jitter(most) => 1 + random.below(u64::from(most)),
                Gaps::Cliff(width) => {
                    if i == self.len / 2 {
                        width
                    } else {
                        1
                    }
                }
            };
            next = next.saturating_add_unsigned(step.max(1));
        }
        if self.shuffle != 0 {
            random.shuffle(&mut offsets);
        }
        offsets
    }
}
