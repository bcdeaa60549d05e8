//! The hash ring: points of clients, keys of queues, and the arc that ends at each point.
//!
//! A queue belongs to the client of the first point at or above its key, or of the lowest point if
//! there is none above. Points and keys are both kept sorted. So what one client owns is a few
//! ranges of the sorted keys, one for each of its points, found by binary search; and what all own
//! is one merge of two sorted lists. Neither hashes anything.
//!
//! Source: apache/rocketmq at commit 8fc57f1468d1, `common/src/main/java/org/apache/rocketmq/
//! common/consistenthash/ConsistentHashRouter.java`.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::ops::Range;

use md5::{Digest, Md5};

use super::narrow;
use crate::message_queue::MessageQueue;
use crate::sync::blocking::Arc;

/// How texts become places on the ring.
#[derive(Clone, Default)]
pub enum RingHash {
    /// Upstream's: the first four bytes of the MD5 of the UTF-8 text, 0 to 2^32 - 1.
    #[default]
    Md5,
    /// The host's. It must give the same answer for the same text in every client of the group.
    Custom(Arc<dyn Fn(&str) -> i64 + Send + Sync>),
}

impl RingHash {
    /// The place of `text`.
    ///
    /// ```
    /// use lanekeeper::allocate::RingHash;
    /// assert_eq!(RingHash::Md5.hash("abc"), 0x9001_5098);
    /// ```
    #[must_use]
    pub fn hash(&self, text: &str) -> i64 {
        match self {
            Self::Md5 => {
                let digest = Md5::digest(text.as_bytes());
                i64::from(u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]))
            }
            Self::Custom(hash) => hash(text),
        }
    }

    /// Whether both give the same answers, as far as can be told.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Md5, Self::Md5) => true,
            (Self::Custom(a), Self::Custom(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl fmt::Debug for RingHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Md5 => "Md5",
            Self::Custom(_) => "Custom",
        })
    }
}

/// The places of queues, ascending; of two in one place the one with the lower index first.
#[derive(Debug)]
pub(super) struct RingKeys {
    hashes: Vec<i64>,
    queues: Vec<u32>,
}

impl RingKeys {
    pub(super) fn new(queues: &[MessageQueue], hash: &RingHash) -> Self {
        let mut text = String::new();
        let mut keys: Vec<(i64, u32)> = Vec::with_capacity(queues.len());
        for (index, queue) in queues.iter().enumerate() {
            text.clear();
            // Writing to a String cannot fail.
            let _ = write!(text, "{queue}");
            keys.push((hash.hash(&text), narrow(index)));
        }
        keys.sort_unstable();
        keys.into_iter().collect()
    }

    /// Apart by room: `room` has a number below `count` for each queue.
    pub(super) fn split(&self, count: usize, room: impl Fn(u32) -> usize) -> Vec<Self> {
        let mut apart = vec![Vec::new(); count];
        for (hash, queue) in self.iter() {
            apart[room(queue)].push((hash, queue));
        }
        apart.into_iter().map(Self::from_iter).collect()
    }

    fn iter(&self) -> impl Iterator<Item = (i64, u32)> {
        self.hashes.iter().copied().zip(self.queues.iter().copied())
    }

    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// How many keys are at or below `hash`.
    fn count_to(&self, hash: i64) -> usize {
        self.hashes.partition_point(|&key| key <= hash)
    }
}

impl FromIterator<(i64, u32)> for RingKeys {
    fn from_iter<I: IntoIterator<Item = (i64, u32)>>(keys: I) -> Self {
        let (hashes, queues) = keys.into_iter().unzip();
        Self { hashes, queues }
    }
}

/// The points of the clients of a group.
///
/// Upstream's `ConsistentHashRouter`: where points collide the later one replaces the earlier, and
/// a node that is added twice goes on numbering its points where those it still has end.
#[derive(Debug)]
pub struct Ring {
    hashes: Vec<i64>,
    /// The node of each point, by the position it was first given at.
    nodes: Vec<u32>,
    /// The points of node n: `points[starts[n]..starts[n + 1]]`.
    points: Vec<u32>,
    starts: Vec<u32>,
    names: Vec<Arc<str>>,
}

impl Ring {
    /// A ring of `nodes`, added in this order, each with `virtual_nodes` points.
    pub fn new<N: Into<Arc<str>>>(
        nodes: impl IntoIterator<Item = N>,
        virtual_nodes: u32,
        hash: &RingHash,
    ) -> Self {
        let names: Vec<Arc<str>> = nodes.into_iter().map(Into::into).collect();
        let mut first_at: HashMap<&str, u32> = HashMap::with_capacity(names.len());
        let mut added: Vec<(i64, u32)> = Vec::with_capacity(names.len() * virtual_nodes as usize);
        let mut text = String::new();
        for (position, name) in names.iter().enumerate() {
            let position = narrow(position);
            let node = *first_at.entry(name).or_insert(position);
            let owned = if node == position { 0 } else { owned(&added, node) };
            for index in 0..u64::from(virtual_nodes) {
                text.clear();
                // Writing to a String cannot fail.
                let _ = write!(text, "{name}-{}", index + owned);
                added.push((hash.hash(&text), node));
            }
        }
        last_in_each_place(&mut added);
        Self::of(added, names)
    }

    fn of(points: Vec<(i64, u32)>, names: Vec<Arc<str>>) -> Self {
        let (hashes, nodes): (Vec<i64>, Vec<u32>) = points.into_iter().unzip();
        let mut starts = vec![0_u32; names.len() + 1];
        for &node in &nodes {
            starts[node as usize + 1] += 1;
        }
        for node in 1..starts.len() {
            starts[node] += starts[node - 1];
        }
        let mut free = starts.clone();
        let mut points = vec![0; nodes.len()];
        for (point, &node) in nodes.iter().enumerate() {
            points[free[node as usize] as usize] = narrow(point);
            free[node as usize] += 1;
        }
        Self { hashes, nodes, points, starts, names }
    }

    /// The same without the points of one node; those it once replaced do not come back.
    #[must_use]
    pub fn without(&self, node: &str) -> Self {
        let gone = self.node(node);
        let points = self.hashes.iter().copied().zip(self.nodes.iter().copied());
        let kept = points.filter(|&(_, node)| Some(node) != gone).collect();
        Self::of(kept, self.names.clone())
    }

    fn node(&self, name: &str) -> Option<u32> {
        self.names.iter().position(|other| **other == *name).map(narrow)
    }

    /// How many points there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether there is none; then nobody owns anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// How many points a node has.
    #[must_use]
    pub fn replicas(&self, node: &str) -> usize {
        self.node(node).map_or(0, |node| self.points_of(node).len())
    }

    /// The node that owns a place.
    #[must_use]
    pub fn route(&self, hash: i64) -> Option<&str> {
        let at = self.hashes.partition_point(|&point| point < hash);
        let node = self.nodes.get(at).or(self.nodes.first())?;
        Some(&self.names[*node as usize])
    }

    pub(super) fn points_of(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.points[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    /// The keys that end at a point: those above the point before it. The lowest point also has
    /// those above the highest.
    fn arc(&self, point: usize, keys: &RingKeys) -> [Range<usize>; 2] {
        let end = keys.count_to(self.hashes[point]);
        match point.checked_sub(1) {
            Some(before) => [keys.count_to(self.hashes[before])..end, 0..0],
            None => {
                let highest = self.hashes[self.hashes.len() - 1];
                [0..end, keys.count_to(highest).max(end)..keys.len()]
            }
        }
    }

    /// Adds the queues of one node to `share`, in the order of their keys.
    pub(super) fn collect(&self, node: u32, keys: &RingKeys, share: &mut Vec<u32>) {
        for &point in self.points_of(node) {
            for range in self.arc(point as usize, keys) {
                share.extend_from_slice(&keys.queues[range]);
            }
        }
    }

    /// Tells each key in order: its queue, and the point that it ends at.
    pub(super) fn each(&self, keys: &RingKeys, mut tell: impl FnMut(u32, usize)) {
        let mut point = 0;
        for (hash, queue) in keys.iter() {
            while point < self.hashes.len() && self.hashes[point] < hash {
                point += 1;
            }
            tell(queue, if point < self.hashes.len() { point } else { 0 });
        }
    }

    pub(super) fn node_of(&self, point: usize) -> u32 {
        self.nodes[point]
    }
}

/// Sorts the points; of those in one place the last one added stays.
fn last_in_each_place(points: &mut Vec<(i64, u32)>) {
    points.sort_by_key(|&(hash, _)| hash);
    points.dedup_by(|later, kept| {
        let same_place = later.0 == kept.0;
        if same_place {
            *kept = *later;
        }
        same_place
    });
}

/// How many points a node has of those added so far.
fn owned(added: &[(i64, u32)], node: u32) -> u64 {
    let mut points = added.to_vec();
    last_in_each_place(&mut points);
    points.iter().filter(|point| point.1 == node).count() as u64
}
