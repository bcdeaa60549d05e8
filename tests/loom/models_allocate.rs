//! Models of what allocates: the swap of the current allocation, one step a call here.

use std::sync::Arc;

use lanekeeper::allocate::{Allocation, Allocator, Members, Route, Strategy};
use lanekeeper::message_queue::MessageQueue;

use crate::scene::Rest;

fn route(count: i32) -> Arc<Route> {
    let queue = |id| MessageQueue::new("t", "b", id).expect("ids are not negative");
    Arc::new(Route::new((0..count).map(queue).collect::<Vec<_>>()).expect("few"))
}

fn members(count: usize) -> Arc<Members> {
    Arc::new(Members::new(["a", "b", "c"].into_iter().take(count)).expect("few"))
}

/// Route, members and strategy replaced at the same time, and read meanwhile: what is read is
/// whole, and no replacement is lost.
pub fn allocator_replacements() -> Rest {
    let first = Allocation::new(Strategy::Average, route(1), members(1)).expect("it fits");
    let allocator = Arc::new(Allocator::new(first));
    let of_route = loom::thread::spawn({
        let allocator = Arc::clone(&allocator);
        move || allocator.set_route(&route(3)).expect("it fits")
    });
    let of_members = loom::thread::spawn({
        let allocator = Arc::clone(&allocator);
        move || allocator.set_members(&members(2)).expect("it fits")
    });
    for _ in 0..2 {
        let found = allocator.load();
        let shares = found.shares().expect("neither is empty");
        let total: usize = (0..shares.len()).map(|at| shares.indexes(at).unwrap().len()).sum();
        assert_eq!((total, shares.len()), (found.route().len(), found.members().len()));
    }
    allocator.set_strategy(&Strategy::AverageByCircle).expect("it fits");
    of_route.join().expect("of the route");
    of_members.join().expect("of the members");
    let last = allocator.load();
    let found = (last.route().len(), last.members().len(), last.strategy().name());
    assert_eq!(found, (3, 2, "AVG_BY_CIRCLE"));
    assert_eq!(last.share("a").expect("a member").indexes(), [0, 2]);
    Rest::of_no_queue()
}
