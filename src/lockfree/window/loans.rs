//! What one consumer handle has on loan, by offset.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::batch::Place;
use crate::types::Target;

/// Spreads offsets, which are small and close together, over the hash; there is no enemy here.
#[derive(Default)]
pub(super) struct OffsetHasher(u64);

impl Hasher for OffsetHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_i64(i64::from(*byte));
        }
    }
    fn write_i64(&mut self, offset: i64) {
        // Fibonacci hashing (Knuth, TAOCP 3, 6.4); the fold puts good bits low and high.
        let product = (self.0 ^ offset as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }
}

pub(super) struct Loan<T> {
    pub(super) place: Place<T>,
    pub(super) delivery: u32,
}

/// The table. One delivery an offset, but for the rare message that came again while its older loan
/// still runs.
pub(super) struct Loans<T> {
    newest: HashMap<i64, Loan<T>, BuildHasherDefault<OffsetHasher>>,
    older: Vec<(i64, Loan<T>)>,
}

impl<T> Loans<T> {
    pub(super) fn new() -> Self {
        Self { newest: HashMap::default(), older: Vec::new() }
    }

    pub(super) fn add(&mut self, offset: i64, loan: Loan<T>) {
        if let Some(old) = self.newest.insert(offset, loan) {
            self.older.push((offset, old));
        }
    }

    /// Removes the loan that a verb about `target` decides with: the named delivery, or the newest.
    pub(super) fn take(&mut self, target: Target) -> Option<Loan<T>> {
        let newest = self.newest.remove(&target.offset)?;
        if target.delivery != 0 && target.delivery != newest.delivery {
            self.newest.insert(target.offset, newest);
            return self.take_older(target);
        }
        if !self.older.is_empty() {
            self.promote(target.offset);
        }
        Some(newest)
    }

    #[cold]
    fn take_older(&mut self, target: Target) -> Option<Loan<T>> {
        let named = |(offset, loan): &(i64, Loan<T>)| {
            *offset == target.offset && loan.delivery == target.delivery
        };
        self.older.iter().position(named).map(|at| self.older.swap_remove(at).1)
    }

    #[cold]
    fn promote(&mut self, offset: i64) {
        let of_offset = self.older.iter().enumerate().filter(|(_, (other, _))| *other == offset);
        if let Some(at) = of_offset.max_by_key(|(_, (_, loan))| loan.delivery).map(|(at, _)| at) {
            let (offset, loan) = self.older.swap_remove(at);
            self.newest.insert(offset, loan);
        }
    }

    /// Removes any loan there is.
    pub(super) fn pop(&mut self) -> Option<Loan<T>> {
        if let Some((_, loan)) = self.older.pop() {
            return Some(loan);
        }
        let offset = *self.newest.keys().next()?;
        self.newest.remove(&offset)
    }
}
