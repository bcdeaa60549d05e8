//! Seeded random numbers that are the same on every machine and in every version.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A generator whose numbers depend on nothing but these parts, so that a decision about one
    /// delivery is the same whichever thread takes it, and whenever.
    pub fn of(seed: u64, parts: &[u64]) -> Self {
        let mut random = Self::new(seed);
        for part in parts {
            random.state = random.next() ^ part;
        }
        random
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// 0 to `end - 1`; the bias of the remainder does not matter for the ends used here.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// True with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        const STEPS: u64 = 1 << 53;
        (self.below(STEPS) as f64) < probability * STEPS as f64
    }
}
