//! Recordings of the Java strategies, ring and queue names, replayed line by line.

use std::collections::BTreeMap;
use std::sync::Arc;

use lanekeeper::allocate::{
    Allocation, ConsistentHash, Members, NoShare, Ring, RingHash, Route, Strategy,
};
use lanekeeper::java;
use lanekeeper::message_queue::{MessageQueue, Name};
use serde_json::Value;

use crate::lines::lines;
use crate::nearby;

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn int(value: &Value) -> i32 {
    value.as_i64().unwrap().try_into().unwrap()
}

fn indexes(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|index| index.as_u64().unwrap() as u32).collect()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(text).collect()
}

/// Upstream's test for collisions: the low byte of the string's hash.
fn low8() -> RingHash {
    RingHash::Custom(Arc::new(|text| i64::from(java::string_hash(text) & 0xff)))
}

pub fn strategy(name: &str, rooms: &[&str]) -> Strategy {
    if let Some(inner) = name.strip_prefix("MACHINE_ROOM_NEARBY/") {
        return nearby(strategy(inner, rooms));
    }
    let mut parts = name.split('/');
    match parts.next().unwrap() {
        "AVG" => Strategy::Average,
        "AVG_BY_CIRCLE" => Strategy::AverageByCircle,
        "MACHINE_ROOM" => Strategy::machine_room(rooms.iter().copied()),
        "CONSISTENT_HASH" => Strategy::ConsistentHash(ConsistentHash {
            virtual_nodes: parts.next().unwrap().parse().unwrap(),
            hash: parts.next().map_or(RingHash::Md5, |_| low8()),
        }),
        other => panic!("unknown strategy {other}"),
    }
}

/// A scenario: its lists in the order given, and in Java's.
struct Scenario {
    route: Arc<Route>,
    members: Arc<Members>,
}

fn scenario(line: &Value) -> Scenario {
    let topic = text(&line["topic"]);
    let queue = |pair: &Value| MessageQueue::new(topic, text(&pair[0]), int(&pair[1])).unwrap();
    let given: Vec<MessageQueue> = line["mq_in"].as_array().unwrap().iter().map(queue).collect();
    let sorted: Vec<MessageQueue> =
        indexes(&line["mq_order"]).iter().map(|&at| given[at as usize].clone()).collect();
    let rooms: BTreeMap<&MessageQueue, &str> = sorted.iter().zip(texts(&line["mq_room"])).collect();
    let route = Route::with_rooms(given, |queue| Some(rooms[queue])).unwrap();
    assert_eq!(route.queues(), sorted);

    let given = texts(&line["cid_in"]);
    let sorted: Vec<&str> =
        indexes(&line["cid_order"]).iter().map(|&at| given[at as usize]).collect();
    let rooms: BTreeMap<&str, &str> =
        sorted.iter().copied().zip(texts(&line["cid_room"])).collect();
    let members = Members::with_rooms(given, |client| Some(rooms[client])).unwrap();
    assert!(members.clients().iter().map(|client| &**client).eq(sorted));
    Scenario { route: route.into(), members: members.into() }
}

/// Every allocation of every scenario. The only difference is A4's: an id that is listed twice
/// gets no share, where Java's classes give the same one to all that bear it.
#[test]
fn a2_every_strategy_gives_what_the_java_class_gives() {
    let (mut same, mut duplicates, mut scenarios) = (0, 0, 0);
    for line in lines("allocate.jsonl.gz").iter().filter(|line| line["case"] == "alloc") {
        scenarios += 1;
        let Scenario { route, members } = scenario(line);
        let rooms = texts(&line["idcs"]);
        for (name, expected) in line["results"].as_object().unwrap() {
            let strategy = strategy(name, &rooms);
            let allocation =
                Allocation::new(strategy, Arc::clone(&route), Arc::clone(&members)).unwrap();
            let shares = allocation.shares().unwrap();
            for (position, expected) in expected.as_array().unwrap().iter().enumerate() {
                let client = &members.clients()[position];
                let share = allocation.share(client).map(|share| share.indexes().to_vec());
                assert_eq!(share.as_deref(), shares.indexes(position).as_deref());
                if members.is_duplicate(position) {
                    assert_eq!(share, Err(NoShare::DuplicateClient));
                    duplicates += 1;
                } else {
                    let label = format!("line {}, {name}, {client}", line["id"]);
                    assert_eq!(share, Ok(indexes(expected)), "{label}");
                    same += 1;
                }
            }
            assert_eq!(expected.as_array().unwrap().len(), members.len());
        }
    }
    assert_eq!((scenarios, same + duplicates), (1_000, 131_673));
    assert_eq!(duplicates, 2_720, "rows of the 80 scenarios with ids listed twice");
}

#[test]
fn ring_hashes_are_those_of_java() {
    let (mut counts, mut removals) = (BTreeMap::<String, u32>::new(), 0);
    for line in lines("consistent_hash.jsonl.gz") {
        let kind = text(&line["k"]);
        *counts.entry(kind.to_owned()).or_default() += 1;
        match kind {
            "str" => {
                assert_eq!(RingHash::Md5.hash(text(&line["s"])), line["h"].as_i64().unwrap());
            }
            "mq" => {
                let shown = name(&line["mq"]).unwrap().to_string();
                assert_eq!(shown, text(&line["s"]));
                assert_eq!(RingHash::Md5.hash(&shown), line["h"].as_i64().unwrap());
            }
            "ring" => removals += replay_ring(&line),
            // A count of points is unsigned here; that Java refuses -1 is left to the C surface.
            "ctor" => assert_eq!(line["vnodes"], -1),
            other => panic!("unknown line {other}"),
        }
    }
    assert_eq!(removals, 46, "rings that were asked again without their first node");
    let expected = [("ctor", 2), ("mq", 500), ("ring", 120), ("str", 676)];
    assert!(counts.iter().map(|(kind, count)| (&**kind, *count)).eq(expected), "{counts:?}");
}

fn replay_ring(line: &Value) -> u32 {
    let hash = match text(&line["hash"]) {
        "md5" => RingHash::Md5,
        _ => low8(),
    };
    let nodes = texts(&line["cids"]);
    let virtual_nodes = line["vnodes"].as_u64().unwrap() as u32;
    let ring = Ring::new(nodes.iter().copied(), virtual_nodes, &hash);
    assert_eq!(ring.len() as u64, line["ring_size"].as_u64().unwrap());
    let replicas: Vec<u32> = nodes.iter().map(|node| ring.replicas(node) as u32).collect();
    assert_eq!(replicas, indexes(&line["replicas"]));
    let pairs = line["route"].as_array().unwrap();
    let route =
        |ring: &Ring, pair: &Value| ring.route(hash.hash(text(&pair[0]))).map(str::to_owned);
    for pair in pairs {
        assert_eq!(route(&ring, pair).as_deref(), pair[1].as_str(), "{pair}");
    }
    let Some(after) = line["route_after_removing_first"].as_array() else { return 0 };
    let rest = ring.without(nodes[0]);
    assert_eq!(after.len(), pairs.len());
    for (pair, node) in pairs.iter().zip(after) {
        assert_eq!(route(&rest, pair).as_deref(), node.as_str(), "{pair} {node}");
    }
    1
}

/// A name as recorded; nothing if it has a null, which no name here can have.
fn name(parts: &Value) -> Option<Name<'_>> {
    let (topic, broker_name) = (parts[0].as_str()?, parts[1].as_str()?);
    Some(Name { topic, broker_name, queue_id: int(&parts[2]) })
}

/// The queue of a name, if its id is legal.
fn legal(name: Name<'_>) -> Option<MessageQueue> {
    let queue = MessageQueue::new(name.topic, name.broker_name, name.queue_id);
    assert_eq!(queue.is_err(), name.queue_id < 0);
    queue.ok()
}

#[test]
fn names_of_queues_are_those_of_java() {
    let (mut nulls, mut counts) = (0, BTreeMap::<String, u32>::new());
    for line in lines("message_queue.jsonl.gz") {
        *counts.entry(text(&line["k"]).to_owned()).or_default() += 1;
        match text(&line["k"]) {
            "mq" => match name(&line["mq"]) {
                None => nulls += 1,
                Some(name) => {
                    assert_eq!(name.to_string(), text(&line["str"]));
                    assert_eq!(name.hash_code(), int(&line["hash"]));
                    if let Some(queue) = legal(name) {
                        assert_eq!(queue.to_string(), text(&line["str"]));
                        assert_eq!(queue.hash_code(), int(&line["hash"]));
                    }
                }
            },
            "cmp" => match (name(&line["a"]), name(&line["b"])) {
                (Some(a), Some(b)) => compare(a, b, &line),
                _ => nulls += 1,
            },
            "sort" => sort(&line),
            "strcmp" => {
                let (a, b) = (text(&line["a"]), text(&line["b"]));
                assert_eq!(java::string_compare(a, b), int(&line["cmp"]), "{line}");
                assert_eq!(java::string_order(a, b) as i32, int(&line["sign"]), "{line}");
            }
            _ => assert_eq!(java::string_hash(text(&line["s"])), int(&line["hash"])),
        }
    }
    let expected = [("cmp", 716), ("mq", 195), ("sort", 80), ("strcmp", 324), ("strhash", 18)];
    assert!(counts.iter().map(|(kind, count)| (&**kind, *count)).eq(expected), "{counts:?}");
    assert_eq!(nulls, 12, "names with a null");
}

fn compare(a: Name<'_>, b: Name<'_>, line: &Value) {
    let difference = a.compare_to(&b);
    assert_eq!(difference, int(&line["cmp"]), "{line}");
    assert_eq!(difference.signum(), int(&line["sign"]), "{line}");
    assert_eq!(a == b, line["eq"].as_bool().unwrap(), "{line}");
    if let (Some(a), Some(b)) = (legal(a), legal(b)) {
        assert_eq!(a.cmp(&b) as i32, int(&line["sign"]), "{line}");
        assert_eq!(a == b, line["eq"].as_bool().unwrap(), "{line}");
    }
}

/// Java's sort is stable and its comparison may be no order; ours is only asked for legal ids.
fn sort(line: &Value) {
    let given: Vec<MessageQueue> = line["in"]
        .as_array()
        .unwrap()
        .iter()
        .map(|parts| legal(name(parts).unwrap()).expect("only legal ids are sorted"))
        .collect();
    let mut order: Vec<u32> = (0..given.len() as u32).collect();
    order.sort_by(|&a, &b| given[a as usize].cmp(&given[b as usize]));
    assert_eq!(order, indexes(&line["order"]), "{line}");
}
