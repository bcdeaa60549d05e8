//! Divisions that no client can compute for itself alone: worked out for all, once.

use super::narrow;
use super::ring::{Ring, RingKeys};
use super::strategy::NOBODY;

/// The share of each client, one after the other.
#[derive(Debug, Default)]
pub(super) struct Division {
    /// Client c has `queues[starts[c]..starts[c + 1]]`.
    pub(super) starts: Vec<u32>,
    /// Indexes into the route.
    pub(super) queues: Vec<u32>,
}

impl Division {
    /// Sorts queues, told in any order with the client that gets them, by client. Within a share
    /// they keep the order in which they were told.
    pub(super) fn of(pairs: &[(u32, u32)], client_count: usize) -> Self {
        let mut starts = vec![0_u32; client_count + 1];
        for &(_, client) in pairs {
            starts[client as usize + 1] += 1;
        }
        for client in 0..client_count {
            starts[client + 1] += starts[client];
        }
        let mut free = starts.clone();
        let mut queues = vec![0; pairs.len()];
        for &(queue, client) in pairs {
            let slot = &mut free[client as usize];
            queues[*slot as usize] = queue;
            *slot += 1;
        }
        Self { starts, queues }
    }

    pub(super) fn share(&self, client: usize) -> &[u32] {
        &self.queues[self.starts[client] as usize..self.starts[client + 1] as usize]
    }

    /// Puts each share into the order of the route.
    pub(super) fn sort(&mut self) {
        for client in 1..self.starts.len() {
            let range = self.starts[client - 1] as usize..self.starts[client] as usize;
            self.queues[range].sort_unstable();
        }
    }
}

/// Keeps what balance allows to keep: everybody gets the average, some of them one more. The one
/// more goes to those who had more than the average, in order, then to the first of the others.
/// What nobody keeps fills the shares in order, so that without owners this is `AVG`.
///
/// `owners` has a client, or nobody, for each of `queues`.
pub(super) fn sticky(queues: &[u32], mut owners: Vec<u32>, client_count: usize) -> Division {
    let average = queues.len() / client_count;
    let mut spare = queues.len() % client_count;
    let mut had = vec![0_usize; client_count];
    for &owner in owners.iter().filter(|&&owner| owner != NOBODY) {
        had[owner as usize] += 1;
    }
    let mut room = vec![average; client_count];
    for had_more in [true, false] {
        for client in 0..client_count {
            if spare > 0 && (had[client] > average) == had_more {
                room[client] += 1;
                spare -= 1;
            }
        }
    }
    for owner in owners.iter_mut().filter(|owner| **owner != NOBODY) {
        match &mut room[*owner as usize] {
            0 => *owner = NOBODY,
            room => *room -= 1,
        }
    }
    let mut next = 0;
    for owner in owners.iter_mut().filter(|owner| **owner == NOBODY) {
        while room[next] == 0 {
            next += 1;
        }
        room[next] -= 1;
        *owner = narrow(next);
    }
    let pairs: Vec<(u32, u32)> = queues.iter().copied().zip(owners).collect();
    Division::of(&pairs, client_count)
}

/// Walks the keys in order; a queue whose client is full goes on to the next point of one that is
/// not. A full client's points are taken out of the walk, so it is as long as the two lists.
pub(super) fn bounded_load(
    keys: &RingKeys,
    ring: &Ring,
    client_count: usize,
    load_percent: u32,
) -> Division {
    let sharing = (0..client_count).filter(|&c| !ring.points_of(narrow(c)).is_empty()).count();
    if sharing == 0 {
        return Division::of(&[], client_count);
    }
    let most = most_each(keys.len(), sharing, load_percent);
    let mut room = vec![most; client_count];
    let mut open = Open::new(ring.len());
    let mut pairs = Vec::with_capacity(keys.len());
    ring.each(keys, |queue, point| {
        let client = ring.node_of(open.from(point));
        pairs.push((queue, client));
        let room = &mut room[client as usize];
        *room -= 1;
        if *room == 0 {
            ring.points_of(client).iter().for_each(|&point| open.close(point));
        }
    });
    let mut division = Division::of(&pairs, client_count);
    division.sort();
    division
}

/// The percentage of the average, rounded up: at least 1, and enough for all together.
fn most_each(queues: usize, clients: usize, load_percent: u32) -> u64 {
    let load = queues as u128 * u128::from(load_percent);
    let most = load.div_ceil(clients as u128 * 100);
    u64::try_from(most).expect("fewer than 2^24 queues times a 32-bit percentage").max(1)
}

/// Finds the next point, clockwise, that is still open. Closed ones point on; paths are shortened
/// as they are walked.
struct Open {
    next: Vec<u32>,
}

impl Open {
    fn new(count: usize) -> Self {
        Self { next: (0..count).map(narrow).collect() }
    }

    /// Ends only if some point is open; whoever asks has a queue left, and so somebody has room.
    fn from(&mut self, point: usize) -> usize {
        let mut at = point;
        while self.next[at] as usize != at {
            let after = self.next[at] as usize;
            self.next[at] = self.next[after];
            at = self.next[at] as usize;
        }
        at
    }

    fn close(&mut self, point: u32) {
        let after = point as usize + 1;
        self.next[point as usize] = if after == self.next.len() { 0 } else { point + 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most queues that any balanced division keeps: tries every choice of who gets one more.
    fn most_kept(had: &[usize], queue_count: usize) -> usize {
        let (average, spare) = (queue_count / had.len(), queue_count % had.len());
        let choices =
            (0..1_u32 << had.len()).filter(|choice| choice.count_ones() as usize == spare);
        let kept = choices.map(|choice| {
            let each = had.iter().enumerate();
            each.map(|(c, &had)| had.min(average + (choice >> c & 1) as usize)).sum()
        });
        kept.max().unwrap()
    }

    /// Every assignment of up to 6 queues to up to 4 clients or nobody, as what was before.
    #[test]
    fn sticky_keeps_the_most_that_balance_allows() {
        let mut tried = 0;
        for client_count in 1..=4_usize {
            for queue_count in 0..=6_usize {
                let queues: Vec<u32> = (0..queue_count as u32).collect();
                for code in 0..(client_count + 1).pow(queue_count as u32) {
                    let digit = |q: u32| (code / (client_count + 1).pow(q)) % (client_count + 1);
                    let owner = |&q: &u32| digit(q).checked_sub(1).map_or(NOBODY, narrow);
                    let owners: Vec<u32> = queues.iter().map(owner).collect();
                    check_sticky(&queues, &owners, client_count);
                    tried += 1;
                }
            }
        }
        assert!(tried > 20_000);
    }

    fn check_sticky(queues: &[u32], owners: &[u32], client_count: usize) {
        let division = sticky(queues, owners.to_vec(), client_count);
        let mut had = vec![0; client_count];
        owners.iter().filter(|&&o| o != NOBODY).for_each(|&o| had[o as usize] += 1);
        let mut kept = 0;
        for client in 0..client_count {
            let share = division.share(client);
            let extra = share.len() - queues.len() / client_count;
            assert!(extra <= usize::from(!queues.len().is_multiple_of(client_count)));
            assert!(share.is_sorted());
            kept += share.iter().filter(|&&q| owners[q as usize] == client as u32).count();
        }
        let mut all = division.queues.clone();
        all.sort_unstable();
        assert_eq!(all, queues);
        assert_eq!(kept, most_kept(&had, queues.len()), "{owners:?} {client_count}");
    }

    #[test]
    fn most_each_is_rounded_up_and_enough_for_all() {
        assert_eq!(most_each(100, 10, 100), 10);
        assert_eq!(most_each(100, 10, 125), 13);
        assert_eq!(most_each(101, 10, 100), 11);
        assert_eq!(most_each(0, 10, 100), 1);
        assert_eq!(
            most_each(1 << 24, 1, u32::MAX),
            ((1_u64 << 24) * u64::from(u32::MAX)).div_ceil(100)
        );
        for queues in 0..200 {
            for clients in 1..40 {
                assert!(most_each(queues, clients, 100) as usize * clients >= queues);
            }
        }
    }
}
