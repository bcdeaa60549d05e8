//! Who consumes which queue: recordings of the Java classes, laws over all small sizes, how much
//! moves when a client comes or goes, and replacing under readers.

#[path = "allocate/edges.rs"]
mod edges;
#[path = "allocate/golden.rs"]
mod golden;
#[path = "allocate/laws.rs"]
mod laws;
#[path = "golden/lines.rs"]
mod lines;
#[path = "allocate/movement.rs"]
mod movement;
#[path = "allocate/random.rs"]
mod random;
#[path = "allocate/swap.rs"]
mod swap;

use std::sync::Arc;

use lanekeeper::allocate::{
    Allocation, BoundedLoad, ConsistentHash, Members, Nearby, Owners, Route, Strategy,
};
use lanekeeper::message_queue::MessageQueue;

fn queue(broker_name: &str, queue_id: i32) -> MessageQueue {
    MessageQueue::new("orders", broker_name, queue_id).unwrap()
}

/// `count` queues on brokers of three rooms, four queues a broker.
fn queues(count: usize) -> Vec<MessageQueue> {
    let broker = |at: usize| format!("room{}@broker-{}", at / 4 % 3, at / 4);
    (0..count).map(|at| queue(&broker(at), at as i32 % 4)).collect()
}

/// `count` clients, spread over two rooms of those three and one that has no queues.
fn clients(count: usize) -> Vec<String> {
    (0..count).map(client).collect()
}

fn client(at: usize) -> String {
    format!("10.1.{}.{}@{}#{}", at / 16, at % 16, 4711 + at * 7, at * 1_000_003)
}

fn room_of_queue(queue: &MessageQueue) -> Option<String> {
    Some(queue.broker_name().split('@').next()?.to_owned())
}

fn room_of_client(client: &str) -> Option<String> {
    let port: usize = client.split(['@', '#']).nth(1)?.parse().ok()?;
    Some(["room0", "room2", "room9"][(port - 4711) / 7 % 3].to_owned())
}

fn route(queues: Vec<MessageQueue>) -> Arc<Route> {
    Route::with_rooms(queues, room_of_queue).unwrap().into()
}

fn members(clients: Vec<String>) -> Arc<Members> {
    Members::with_rooms(clients, room_of_client).unwrap().into()
}

fn allocation(strategy: &Strategy, route: &Arc<Route>, members: &Arc<Members>) -> Allocation {
    Allocation::new(strategy.clone(), Arc::clone(route), Arc::clone(members)).unwrap()
}

/// One that can be told from the others by its name, and what it promises.
struct Case {
    name: &'static str,
    strategy: Strategy,
    /// All shares differ by one queue at most.
    balanced: bool,
    /// Only queues of this room are divided.
    only_room: Option<&'static str>,
}

fn nearby(inner: Strategy) -> Strategy {
    Strategy::MachineRoomNearby(Nearby::new(inner).unwrap())
}

/// Every strategy but `CONFIG`.
fn cases() -> Vec<Case> {
    let ring = ConsistentHash::default;
    let case = |name, strategy, balanced| Case { name, strategy, balanced, only_room: None };
    let bounded = |percent| Strategy::BoundedLoad(BoundedLoad::new(ring(), percent).unwrap());
    let room = Strategy::machine_room(["room1"]);
    let sticky = || Strategy::Sticky(Arc::new(Owners::default()));
    vec![
        case("AVG", Strategy::Average, true),
        case("AVG_BY_CIRCLE", Strategy::AverageByCircle, true),
        Case { name: "MACHINE_ROOM", strategy: room, balanced: true, only_room: Some("room1") },
        case("STICKY", sticky(), true),
        case("CONSISTENT_HASH", Strategy::ConsistentHash(ring()), false),
        case("BOUNDED_LOAD 125 %", bounded(125), false),
        case("BOUNDED_LOAD 100 %", bounded(100), false),
        case("MACHINE_ROOM_NEARBY-AVG", nearby(Strategy::Average), false),
        case("MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE", nearby(Strategy::AverageByCircle), false),
        case("MACHINE_ROOM_NEARBY-STICKY", nearby(sticky()), false),
        case(
            "MACHINE_ROOM_NEARBY-CONSISTENT_HASH",
            nearby(Strategy::ConsistentHash(ring())),
            false,
        ),
        case("MACHINE_ROOM_NEARBY-BOUNDED_LOAD", nearby(bounded(125)), false),
    ]
}
