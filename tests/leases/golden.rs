//! The recordings of `MessageQueueLock` and `RebalanceLockManager`, call for call.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::Arc;

use flate2::read::GzDecoder;
use lanekeeper::intern::{Id, Interner};
use lanekeeper::lease::LeaseTable;
use lanekeeper::process_queue::Refusal;
use lanekeeper::queue_lock::QueueLockTable;
use serde_json::Value;

use crate::{Queue, named};

fn lines(name: &str) -> Vec<Value> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "golden", name].iter().collect();
    let file = File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines = BufReader::new(GzDecoder::new(file)).lines();
    lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
}

/// A recorded queue and shard; no shard, and shard -1, mean the whole queue.
fn lock_key(op: &Value) -> Option<(Queue, Option<u32>)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let queue = op[0].as_array()?;
    let queue_id = i32::try_from(queue[2].as_i64().unwrap()).unwrap();
    let shard = op[1].as_i64().filter(|&shard| shard != -1);
    let shard = shard.map(|shard| u32::try_from(shard).unwrap());
    Some(((text(&queue[0]), text(&queue[1]), queue_id), shard))
}

/// Upstream answers an object to lock; the recordings say which calls answer the same one. Here the
/// same lock is one whose turn, begun through one call, makes the other call Busy.
#[test]
fn the_calls_that_share_a_lock_upstream_share_a_turn() {
    let (mut calls, mut thrown) = (0, 0);
    for line in lines("message_queue_lock.jsonl.gz") {
        let queues = Arc::new(Interner::<Queue>::new());
        let table = QueueLockTable::new(Arc::clone(&queues));
        let mut keys: Vec<(Id, Option<u32>)> = Vec::new();
        let mut held = BTreeMap::new();
        for op in line["ops"].as_array().unwrap() {
            let Some((queue, shard)) = lock_key(op) else {
                // A null queue throws; here there is no such id.
                assert!(op[2]["ex"].is_string(), "{line}");
                thrown += 1;
                continue;
            };
            let id = queues.intern(&queue).unwrap();
            if !keys.contains(&(id, shard)) {
                table.open(id, shard, 1).unwrap();
                keys.push((id, shard));
            }
            let lock = op[2].as_u64().unwrap();
            match table.begin(id, shard) {
                Ok(turn) => {
                    let before = held.insert(lock, turn.suspend());
                    assert!(before.is_none(), "lock {lock} is one lock: {line}");
                }
                Err(refusal) => {
                    assert_eq!(refusal, Refusal::Busy, "{line}");
                    assert!(held.contains_key(&lock), "lock {lock} is another lock: {line}");
                }
            }
            calls += 1;
        }
        assert_eq!(table.held_count(), held.len());
    }
    assert_eq!((calls, thrown), (1_179, 38));
}

type State = BTreeMap<String, BTreeSet<(i64, String, i64)>>;

/// Upstream keeps groups without leases; here nothing tells them from groups never seen.
fn recorded(state: &Value) -> State {
    let mut groups = State::new();
    for group in state.as_array().unwrap() {
        for lease in group[1].as_array().unwrap() {
            let client = lease[1].as_str().unwrap_or("no name").to_owned();
            let row = (lease[0].as_i64().unwrap(), client, lease[2].as_i64().unwrap());
            groups.entry(group[0].as_str().unwrap().to_owned()).or_default().insert(row);
        }
    }
    groups
}

struct Player {
    table: LeaseTable<Queue>,
    queues: Vec<Id>,
    groups: BTreeMap<String, Id>,
    now_ms: i64,
    /// Per lease: owner and token, to see that takeovers and they alone change it.
    tokens: BTreeMap<(Id, Id), (String, u64)>,
}

impl Player {
    fn new(line: &Value) -> Self {
        let interner = Arc::new(Interner::new());
        let count = i32::try_from(line["queues"].as_i64().unwrap()).unwrap();
        let queues = (0..count).map(|index| interner.intern(&named(index)).unwrap()).collect();
        Self {
            table: LeaseTable::new(interner, 0),
            queues,
            groups: BTreeMap::new(),
            now_ms: line["start"].as_i64().unwrap(),
            tokens: BTreeMap::new(),
        }
    }

    fn group(&mut self, name: &Value) -> Id {
        let name = name.as_str().unwrap().to_owned();
        let table = &self.table;
        *self.groups.entry(name).or_insert_with_key(|name| table.group(name).unwrap())
    }

    fn queue(&self, index: &Value) -> Id {
        self.queues[usize::try_from(index.as_i64().unwrap()).unwrap()]
    }

    fn batch(&self, indexes: &Value) -> Vec<Id> {
        indexes.as_array().unwrap().iter().map(|index| self.queue(index)).collect()
    }

    /// The client is connected for this call only: its leases keep its id.
    fn as_client<R>(&mut self, name: &Value, call: impl FnOnce(&Self, Id) -> R) -> R {
        let client = self.table.client(name.as_str().unwrap()).unwrap();
        let answer = call(self, client);
        self.table.release_client(client).unwrap();
        answer
    }

    /// Plays one call; what it answered, in the form recorded.
    fn play(&mut self, op: &Value) -> Value {
        let now_ms = self.now_ms;
        match op[0].as_str().unwrap() {
            "tryLock" => {
                let (group, queue) = (self.group(&op[1]), self.queue(&op[2]));
                self.as_client(&op[3], |player, client| {
                    player.table.acquire(group, queue, client, now_ms).is_ok().into()
                })
            }
            "tryLockBatch" => {
                let (group, queues) = (self.group(&op[1]), self.batch(&op[2]));
                let mut given = BTreeSet::new();
                self.as_client(&op[3], |player, client| {
                    player.table.acquire_batch(group, &queues, client, now_ms, |at, answer| {
                        if answer.is_ok() {
                            given.insert(op[2][at].as_i64().unwrap());
                        }
                    });
                });
                given.into_iter().collect()
            }
            "unlockBatch" => {
                let (group, queues) = (self.group(&op[1]), self.batch(&op[2]));
                self.as_client(&op[3], |player, client| {
                    player.table.release_batch(group, &queues, client).unwrap();
                });
                Value::Null
            }
            "isLockAllExpired" => {
                let group = self.group(&op[1]);
                self.table.all_expired(group, now_ms).unwrap().into()
            }
            other => panic!("unknown call {other}"),
        }
    }

    fn state(&mut self) -> State {
        let mut groups = State::new();
        for (name, &group) in &self.groups {
            let (table, tokens) = (&self.table, &mut self.tokens);
            table
                .each(group, |holder| {
                    let queue_id = table.queues().key(holder.queue).unwrap().2;
                    let client = table.client_name(holder.client).unwrap();
                    let row = (i64::from(queue_id), client.clone(), holder.last_ms);
                    groups.entry(name.clone()).or_default().insert(row);
                    let now = (client, holder.token);
                    let before = tokens.insert((group, holder.queue), now.clone());
                    if let Some((owner, token)) = before {
                        assert!(holder.token >= token, "tokens ascend");
                        assert!(owner == now.0 || holder.token > token, "a takeover changes it");
                    }
                })
                .unwrap();
        }
        groups
    }
}

#[test]
fn leases_are_given_renewed_and_taken_as_upstream_does() {
    let (mut played, mut without_name, mut diverged) = (0, 0, 0);
    for line in lines("lease.jsonl.gz") {
        let mut player = Player::new(&line);
        for op in line["ops"].as_array().unwrap() {
            played += 1;
            if op[0] == "tick" {
                player.now_ms += op[1].as_i64().unwrap();
                continue;
            }
            let fields = op.as_array().unwrap();
            if fields[..fields.len() - 2].contains(&Value::Null) {
                // A null group throws, a null client takes a lease that throws for everybody later.
                // Here there are no such ids. Where upstream changed nothing the line goes on.
                without_name += 1;
                if player.state() == recorded(&fields[fields.len() - 1]) {
                    continue;
                }
                diverged += 1;
                break;
            }
            let [.., answer, state] = fields.as_slice() else { panic!("{op}") };
            assert_eq!(player.play(op), *answer, "line {}: {op}", line["id"]);
            assert_eq!(player.state(), recorded(state), "line {}: {op}", line["id"]);
        }
        // Nothing is left of the clients once their leases are gone.
        player.table.sweep(i64::from(u32::MAX) * 600);
        assert_eq!(player.table.name_counts(), (player.groups.len(), 0));
    }
    // Of 11,882 operations 7 come after the two lines diverged.
    assert_eq!((played, without_name, diverged), (11_875, 8, 2));
}
