//! Reports about which client consumes which queues.

use std::sync::Arc;

use lanekeeper::allocate::{
    Allocation, ConsistentHash, Members, Nearby, NoShare, Ring, RingHash, Route, Strategy,
};
use lanekeeper::message_queue::MessageQueue;

fn queue(broker_name: &str, queue_id: i32) -> MessageQueue {
    MessageQueue::new("t", broker_name, queue_id).unwrap()
}

fn on_one_broker(count: i32) -> Vec<MessageQueue> {
    (0..count).map(|id| queue("b", id)).collect()
}

fn allocation(strategy: Strategy, queues: Vec<MessageQueue>, clients: &[&str]) -> Allocation {
    let route = Route::with_rooms(queues, |queue| {
        queue.broker_name().split_once('@').map(|(room, _)| room.to_owned())
    });
    let members = Members::with_rooms(clients.iter().copied(), |client| {
        client.split_once('@').map(|(room, _)| room.to_owned())
    });
    Allocation::new(strategy, route.unwrap().into(), members.unwrap().into()).unwrap()
}

fn shares(strategy: Strategy, queues: Vec<MessageQueue>, clients: &[&str]) -> Vec<Vec<u32>> {
    let allocation = allocation(strategy, queues, clients);
    clients.iter().map(|client| allocation.share(client).unwrap().indexes().to_vec()).collect()
}

/// apache/rocketmq-client-go#419: another rule for the remainder than Java's, so that in a mixed
/// fleet some queues had two consumers and others none.
#[test]
fn rocketmq_client_go_419_the_remainder_goes_where_java_puts_it() {
    let three = ["a", "b", "c"];
    let average = |queues| shares(Strategy::Average, on_one_broker(queues), &three);
    assert_eq!(average(7), [vec![0, 1, 2], vec![3, 4], vec![5, 6]]);
    assert_eq!(average(8), [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7]]);
    let circle = shares(Strategy::AverageByCircle, on_one_broker(7), &three);
    assert_eq!(circle, [vec![0, 3, 6], vec![1, 4], vec![2, 5]]);
    let in_room = |count, clients| {
        let queues: Vec<_> = (0..count).map(|id| queue("r@b", id)).collect();
        shares(Strategy::machine_room(["r"]), queues, clients)
    };
    assert_eq!(in_room(5, &three[..2]), [vec![0, 1, 4], vec![2, 3]]);
    assert_eq!(in_room(7, &three), [vec![0, 1, 6], vec![2, 3], vec![4, 5]]);
}

/// mxsm/rocketmq-rust#1101: more clients than queues, and a subtraction went below zero.
#[test]
fn rocketmq_rust_1101_more_clients_than_queues_leaves_some_with_nothing() {
    let six = ["a", "b", "c", "d", "e", "f"];
    let ring = Strategy::ConsistentHash(ConsistentHash::default());
    for strategy in [Strategy::Average, Strategy::AverageByCircle, ring] {
        for queue_count in 1..6 {
            let shares = shares(strategy.clone(), on_one_broker(queue_count), &six);
            assert_eq!(shares.iter().map(Vec::len).sum::<usize>(), queue_count as usize);
        }
    }
    let last = shares(Strategy::Average, on_one_broker(4), &six);
    assert_eq!(last[4..], [Vec::<u32>::new(), Vec::new()]);
}

/// apache/rocketmq#2477: the queues of the room were picked out, and then all were divided.
#[test]
fn rocketmq_2477_only_queues_of_the_room_are_divided() {
    let queues = || vec![queue("r1@b", 0), queue("r1@b", 1), queue("r2@b", 2), queue("r2@b", 3)];
    let shares_of = |strategy, clients: &[&str]| shares(strategy, queues(), clients);
    let room = shares_of(Strategy::machine_room(["r1"]), &["a", "b"]);
    assert_eq!(room, [vec![0], vec![1]]);

    // Nearby: a room without clients is for everybody, and nothing is left out or given twice.
    let nearby = || Strategy::MachineRoomNearby(Nearby::new(Strategy::Average).unwrap());
    assert_eq!(shares_of(nearby(), &["r1@a", "r1@b"]), [vec![0, 2], vec![1, 3]]);
    assert_eq!(shares_of(nearby(), &["r1@a", "r2@b"]), [vec![0, 1], vec![2, 3]]);
    assert_eq!(shares_of(nearby(), &["r8@a", "r9@b"]), [vec![0, 2], vec![1, 3]]);

    // A room that is not known is an answer and not a null.
    let unknown = allocation(nearby(), queues(), &["r1@a", "b"]);
    let error = unknown.share("r1@a").unwrap_err();
    assert_eq!(error.to_string(), "the machine room of the client b is not known");
}

/// apache/rocketmq#667: two clients with one id both took the share of its first position; half of
/// the queues had two consumers and the other half none, and nobody was told.
#[test]
fn rocketmq_667_clients_that_share_an_id_are_told() {
    for strategy in [
        Strategy::Average,
        Strategy::AverageByCircle,
        Strategy::ConsistentHash(ConsistentHash::default()),
        Strategy::machine_room(["b"]),
    ] {
        let allocation = allocation(strategy, on_one_broker(4), &["a", "a"]);
        assert_eq!(allocation.share("a").err(), Some(NoShare::DuplicateClient));
        let shares = allocation.shares().unwrap();
        assert!((0..2).all(|at| shares.indexes(at) == Err(NoShare::DuplicateClient)));
    }
    let text = NoShare::DuplicateClient.to_string();
    assert!(text.contains("several clients") && text.contains("id of its own"), "{text}");
}

/// apache/rocketmq#351: clients that see the same lists in another order divided them otherwise.
#[test]
fn rocketmq_351_the_order_in_which_a_list_arrives_does_not_matter() {
    let straight = allocation(Strategy::Average, on_one_broker(8), &["a", "b"]);
    let mut turned: Vec<_> = on_one_broker(8).into_iter().rev().collect();
    turned.extend(on_one_broker(3));
    let other = allocation(Strategy::Average, turned, &["b", "a"]);
    for client in ["a", "b"] {
        assert_eq!(
            other.share(client).unwrap().indexes(),
            straight.share(client).unwrap().indexes()
        );
    }
}

/// apache/rocketmq#351, collisions on the ring (apache/rocketmq-flink#113): who owns a place that
/// two clients want depends on the sorted list alone, as in Java, and never on arrival.
#[test]
fn rocketmq_351_collisions_on_the_ring_are_settled_by_the_sorted_list() {
    // Four places for sixty points.
    let hash = RingHash::Custom(Arc::new(|text| i64::from(text.len() as u32 % 4)));
    let ring = || {
        let hash = hash.clone();
        Strategy::ConsistentHash(ConsistentHash { virtual_nodes: 20, hash })
    };
    let straight = allocation(ring(), on_one_broker(40), &["a", "bb", "ccc"]);
    let turned = allocation(ring(), on_one_broker(40), &["ccc", "a", "bb"]);
    let mut total = 0;
    for client in ["a", "bb", "ccc"] {
        let share = straight.share(client).unwrap();
        assert_eq!(turned.share(client).unwrap().indexes(), share.indexes());
        total += share.len();
    }
    assert_eq!(total, 40);
    // The last of the sorted list has the places that it wants.
    let ring = Ring::new(["a", "bb", "ccc"], 20, &hash);
    assert_eq!((ring.len(), ring.replicas("ccc")), (4, 2));
}
